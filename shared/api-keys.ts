/**
 * API keys: `key_` + base58 (Bitcoin alphabet) of 32 random bytes followed by their CRC32, big-endian
 * (design section 6). Stored only as HMAC-SHA-256 under the installation's pepper, never in clear.
 * Proxy keys: 22 base58 digits of 16 random bytes, looked up by such an HMAC too.
 */
import { createHmac, type KeyObject, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const PREFIX = 'key_';
const SECRET_BYTES = 32;
const TOTAL_BYTES = SECRET_BYTES + 4;
const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** 36 bytes are at most 50 base58 digits; anything longer is refused before any arithmetic. */
const MAX_DIGITS = 50;

const PROXY_KEY_BYTES = 16;
/** 16 bytes are at most 22 base58 digits. */
const PROXY_KEY = /^[1-9A-HJ-NP-Za-km-z]{22}$/;
const PROXY_KEY_DIGITS = 22;

const DIGIT_VALUES = new Map([...ALPHABET].map((digit, value) => [digit, BigInt(value)]));

/** 58^9, the largest power of 58 whose remainders are exact numbers: nine digits per division. */
const CHUNK_DIGITS = 9;
const CHUNK = 58n ** 9n;

/** Base58 text (Bitcoin alphabet, leading zero bytes as `1`) of `bytes`. */
export function encodeBase58(bytes: Buffer): string {
  let value = BigInt(`0x${bytes.toString('hex') || '0'}`);
  let text = '';
  while (value > 0n) {
    let chunk = Number(value % CHUNK);
    value /= CHUNK;
    // The leading chunk ends at its last digit, the others have all nine.
    for (let digit = 0; value > 0n ? digit < CHUNK_DIGITS : chunk > 0; digit += 1) {
      text = ALPHABET.charAt(chunk % 58) + text;
      chunk = Math.floor(chunk / 58);
    }
  }
  for (const byte of bytes) {
    if (byte !== 0) break;
    text = `1${text}`;
  }
  return text;
}

/** The bytes behind base58 `text`, or `undefined` when it is not exactly `length` bytes of base58. */
function decodeBase58(text: string, length: number): Buffer | undefined {
  let value = 0n;
  for (const character of text) {
    const digit = DIGIT_VALUES.get(character);
    if (digit === undefined) return undefined;
    value = value * 58n + digit;
  }
  const hex = value.toString(16);
  if (hex.length > length * 2) return undefined;
  const bytes = Buffer.from(hex.padStart(length * 2, '0'), 'hex');
  // One spelling per key: a different number of leading `1` is another text for the same bytes.
  return encodeBase58(bytes) === text ? bytes : undefined;
}

/** A new random API key of 256 bits. */
export function generateApiKey(): string {
  const bytes = Buffer.alloc(TOTAL_BYTES);
  randomBytes(SECRET_BYTES).copy(bytes);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, SECRET_BYTES)), SECRET_BYTES);
  return PREFIX + encodeBase58(bytes);
}

/** Whether `key` has the form and the checksum of an API key: says nothing about it being known. */
export function isWellFormedApiKey(key: string): boolean {
  if (!key.startsWith(PREFIX) || key.length > PREFIX.length + MAX_DIGITS) return false;
  const bytes = decodeBase58(key.slice(PREFIX.length), TOTAL_BYTES);
  if (bytes === undefined) return false;
  return crc32(bytes.subarray(0, SECRET_BYTES)) === bytes.readUInt32BE(SECRET_BYTES);
}

/** What the key directory stores for `key`: 32 bytes, HMAC-SHA-256 under the pepper. */
export function hashApiKey(key: string, pepper: KeyObject): Buffer {
  return createHmac('sha256', pepper).update(key).digest();
}

/** A new random proxy key of 128 bits. */
export function generateProxyKey(): string {
  // Leading ones are leading zeros: every key has the same length.
  return encodeBase58(randomBytes(PROXY_KEY_BYTES)).padStart(PROXY_KEY_DIGITS, '1');
}

/** Whether `key` has the form of a proxy key: says nothing about it being known. */
export function isWellFormedProxyKey(key: string): boolean {
  return PROXY_KEY.test(key);
}

/** What the key directory stores for a proxy key: no API key ever has the same hash. */
export function hashProxyKey(key: string, pepper: KeyObject): Buffer {
  return createHmac('sha256', pepper).update('proxy\0').update(key).digest();
}
