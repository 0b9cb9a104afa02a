/**
 * Blind indexes of token contents: HMAC-SHA-256 under keys of the tenant, so that a dump of the
 * database allows no guessing of card numbers. Never a plain hash.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { encodeBase58 } from '../api-keys.ts';

/** 128 bits tell terms of one tenant apart; the index is half the size of the whole HMAC. */
const TERM_BYTES = 16;

/** Base58 of an HMAC of type and value: equal contents of one type share it within a tenant. */
export function fingerprintOf(key: KeyObject, type: string, value: string): string {
  return encodeBase58(createHmac('sha256', key).update(`${type}\0${value}`).digest());
}

/** The stored form of a search index value. Case is folded: data terms match without case. */
export function dataTerm(key: KeyObject, value: string): Buffer {
  return term(key, `data\0${value.toLowerCase()}`);
}

/** The stored form of one metadata entry. `folded` is the value after `foldMetadataValue`. */
export function metadataTerm(key: KeyObject, name: string, folded: string): Buffer {
  return term(key, `metadata\0${name}\0${folded}`);
}

function term(key: KeyObject, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest().subarray(0, TERM_BYTES);
}
