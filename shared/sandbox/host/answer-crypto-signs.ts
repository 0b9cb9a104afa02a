/** What scripts do with asymmetric keys: sign, verify, encrypt, decrypt, agree on a secret. */
import crypto from 'node:crypto';
import { digestName } from './answer-crypto-digests.ts';
import {
  type Answer,
  integerOrNone,
  type Question,
  textOrNone,
  wrongArgument,
} from './answer-crypto-frames.ts';
import { curveName, privateKey, publicKey } from './answer-crypto-keys.ts';

/** OpenSSL's numbers for paddings of RSA go up to here. */
const PADDING_MAX = 6;
/** -1 the digest's length, -2 as much as fits or whatever is found. */
const SALT_LENGTH_MIN = -2;
const SALT_LENGTH_MAX = 1024;
const ECDH_BYTES_MAX = 256;
const CONVERSIONS = ['compressed', 'uncompressed', 'hybrid'] as const;

/** Values: digest or null, private key, options. Pieces: material, password, data. */
export function sign(question: Question): Answer {
  const key = { key: privateKey(question, 1, 0), ...signOptions(question) };
  return { bytes: [crypto.sign(digestOrNone(question), question.bytes(2), key)] };
}

/** As `sign` with a public key; pieces: material, password, data, signature. Value: whether it fits. */
export function verify(question: Question): Answer {
  const key = { key: publicKey(question, 1, 0), ...signOptions(question) };
  return {
    value: crypto.verify(digestOrNone(question), question.bytes(2), key, question.bytes(3)),
  };
}

function digestOrNone(question: Question): string | null {
  const value = question.value(0);
  return value === null || value === undefined ? null : digestName(value);
}

function signOptions(question: Question) {
  const padding = integerOrNone(question.option(2, 'padding'), 1, PADDING_MAX);
  const given = question.option(2, 'saltLength');
  const saltLength = integerOrNone(given, SALT_LENGTH_MIN, SALT_LENGTH_MAX);
  const dsaEncoding: 'ieee-p1363' | 'der' =
    question.option(2, 'dsaEncoding') === 'ieee-p1363' ? 'ieee-p1363' : 'der';
  return {
    ...(padding === undefined ? {} : { padding }),
    ...(saltLength === undefined ? {} : { saltLength }),
    dsaEncoding,
  };
}

/** Values: which way, key, options. Pieces: material, password, label or none, data. */
export function encryptRsa(question: Question): Answer {
  const way = question.text(0);
  const padding = integerOrNone(question.option(2, 'padding'), 1, PADDING_MAX);
  const oaepHash = question.option(2, 'oaepHash');
  const oaepLabel = question.bytesOrNone(2);
  const options = {
    ...(padding === undefined ? {} : { padding }),
    ...(oaepHash === undefined ? {} : { oaepHash: digestName(oaepHash) }),
    ...(oaepLabel === undefined ? {} : { oaepLabel }),
  };
  return { bytes: [carryOut(way, question, options)] };
}

function carryOut(way: string, question: Question, options: Partial<crypto.RsaPublicKey>): Buffer {
  const data = question.bytes(3);
  const withPublic = () => ({ ...options, key: publicKey(question, 1, 0) });
  const withPrivate = () => ({ ...options, key: privateKey(question, 1, 0) });
  if (way === 'publicEncrypt') return crypto.publicEncrypt(withPublic(), data);
  if (way === 'publicDecrypt') return crypto.publicDecrypt(withPublic(), data);
  if (way === 'privateEncrypt') return crypto.privateEncrypt(withPrivate(), data);
  return way === 'privateDecrypt' ? crypto.privateDecrypt(withPrivate(), data) : wrongArgument();
}

/** Values: private key, public key. Pieces: material and password of each. */
export function diffieHellman(question: Question): Answer {
  const keys = { privateKey: privateKey(question, 0, 0), publicKey: publicKey(question, 1, 2) };
  return { bytes: [crypto.diffieHellman(keys)] };
}

/** Values: curve. A private key's number and the uncompressed public point. */
export function ecdhGenerate(question: Question): Answer {
  const ecdh = crypto.createECDH(curveName(question.value(0)));
  const point = ecdh.generateKeys();
  return { bytes: [ecdh.getPrivateKey(), point] };
}

/** Values: curve. Pieces: private number, the other's point if any. The point, or the shared secret. */
export function ecdhDerive(question: Question): Answer {
  const ecdh = crypto.createECDH(curveName(question.value(0)));
  ecdh.setPrivateKey(short(question.bytes(0)));
  const other = question.bytesOrNone(1);
  return { bytes: [other === undefined ? ecdh.getPublicKey() : ecdh.computeSecret(short(other))] };
}

/** Values: curve, form. Pieces: a point. */
export function ecdhConvert(question: Question): Answer {
  const curve = curveName(question.value(0));
  const form = textOrNone(question.value(1) ?? undefined) ?? 'uncompressed';
  const known = CONVERSIONS.find((name) => name === form) ?? wrongArgument();
  const point = crypto.ECDH.convertKey(
    short(question.bytes(0)),
    curve,
    undefined,
    undefined,
    known,
  );
  return { bytes: [typeof point === 'string' ? Buffer.from(point, 'latin1') : point] };
}

function short(bytes: Buffer): Buffer {
  return bytes.length <= ECDH_BYTES_MAX ? bytes : wrongArgument();
}
