/** Digests, message authentication, key derivation and random bytes for scripts, bounded in what they cost. */
import crypto from 'node:crypto';
import {
  type Answer,
  integerOrNone,
  type Question,
  refuse,
  textOrNone,
  wrongArgument,
} from './answer-crypto-frames.ts';

const RANDOM_BYTES_MAX = 1024 * 1024;
/** What an extendable digest may give. */
const DIGEST_BYTES_MAX = 64 * 1024;
/** Of a derived key; one block of a digest costs all iterations again. */
const DERIVED_BYTES_MAX = 4 * 1024;
/** HKDF stops at 255 blocks by itself. */
const HKDF_BYTES_MAX = 255 * 64;
const SALT_BYTES_MAX = 4 * 1024;
/** Iterations times blocks times weight, 1.7 s on a free core; the largest common advice is 1.4 million. */
const PBKDF2_COST_MAX = 10_000_000;
/** What a round costs in rounds of SHA-256, by measurement; digests that are not here cost the most. */
const WEIGHTS: readonly (readonly [RegExp, number])[] = [
  [/^(?:rsa-)?sha-?(?:1|224|256)$/i, 1],
  [/^(?:md5|(?:rsa-)?sha-?(?:384|512))$/i, 3],
];
const WEIGHT_MAX = 6;
const SCRYPT_MEMORY_BYTES_MAX = 64 * 1024 * 1024;
/** N * r * p: 0.4 s; and p * r, which sizes what is hashed before and after. */
const SCRYPT_WORK_MAX = 2 ** 20;
const SCRYPT_LANES_MAX = 2 ** 14;
/** Names as OpenSSL spells them: no path, no property query. */
const DIGEST_NAME = /^[A-Za-z0-9/_-]{1,48}$/;
const OUTPUTS = ['hex', 'base64', 'base64url', 'latin1'] as const;

/** A digest's name, for OpenSSL to know or not. */
export function digestName(value: unknown): string {
  if (typeof value === 'string' && DIGEST_NAME.test(value)) return value;
  return refuse('ERR_CRYPTO_INVALID_DIGEST', 'Invalid digest', TypeError);
}

/** Values: digest, bytes of output or null, encoding or null. Pieces: what is hashed. */
export function hash(question: Question): Answer {
  const outputLength = integerOrNone(question.value(1) ?? undefined, 0, DIGEST_BYTES_MAX);
  const options = outputLength === undefined ? {} : { outputLength };
  const made = crypto.createHash(digestName(question.value(0)), options);
  return encoded(made.update(question.rest(0)).digest(), question.value(2));
}

/** Values: digest, encoding or null. Pieces: key, what is authenticated. */
export function hmac(question: Question): Answer {
  const made = crypto.createHmac(digestName(question.value(0)), question.bytes(0));
  return encoded(made.update(question.rest(1)).digest(), question.value(1));
}

function encoded(bytes: Buffer, encoding: unknown): Answer {
  const output = OUTPUTS.find((name) => name === encoding);
  return output === undefined ? { bytes: [bytes] } : { value: bytes.toString(output) };
}

/** Values: iterations, bytes, digest. Pieces: password, salt. */
export function pbkdf2(question: Question): Answer {
  const digest = digestName(question.value(2));
  const iterations = question.integer(0, 1, 2 ** 31 - 1);
  const length = question.integer(1, 0, DERIVED_BYTES_MAX);
  const block = blockLength(digest);
  const rounds = iterations * Math.max(1, Math.ceil(length / Math.max(1, block)));
  if (rounds * weightOf(digest) > PBKDF2_COST_MAX) tooCostly();
  return {
    bytes: [crypto.pbkdf2Sync(question.bytes(0), salt(question, 1), iterations, length, digest)],
  };
}

function weightOf(digest: string): number {
  return WEIGHTS.find(([names]) => names.test(digest))?.[1] ?? WEIGHT_MAX;
}

/** Bytes that one round of a derivation with this digest gives. */
function blockLength(digest: string): number {
  try {
    return crypto.createHash(digest).digest().length;
  } catch {
    return refuse('ERR_CRYPTO_INVALID_DIGEST', 'Invalid digest', TypeError);
  }
}

/** Values: bytes, N, r, p. Pieces: password, salt. */
export function scrypt(question: Question): Answer {
  const length = question.integer(0, 0, DERIVED_BYTES_MAX);
  const N = question.integer(1, 2, 2 ** 31 - 1);
  const r = question.integer(2, 1, SCRYPT_LANES_MAX);
  const p = question.integer(3, 1, SCRYPT_LANES_MAX);
  if (128 * N * r > SCRYPT_MEMORY_BYTES_MAX) {
    refuse(
      'ERR_CRYPTO_INVALID_SCRYPT_PARAMS',
      'Invalid scrypt params: memory limit exceeded',
      RangeError,
    );
  }
  if (N * r * p > SCRYPT_WORK_MAX || p * r > SCRYPT_LANES_MAX) tooCostly();
  const options = { N, r, p, maxmem: 2 * SCRYPT_MEMORY_BYTES_MAX };
  return { bytes: [crypto.scryptSync(question.bytes(0), salt(question, 1), length, options)] };
}

/** Values: digest, bytes. Pieces: key, salt, info. */
export function hkdf(question: Question): Answer {
  const length = question.integer(1, 0, HKDF_BYTES_MAX);
  const [key, info] = [question.bytes(0), question.bytes(2)];
  const made = crypto.hkdfSync(digestName(question.value(0)), key, question.bytes(1), info, length);
  return { bytes: [Buffer.from(made)] };
}

function salt(question: Question, index: number): Buffer {
  const bytes = question.bytes(index);
  if (bytes.length <= SALT_BYTES_MAX) return bytes;
  return refuse('ERR_OUT_OF_RANGE', `A salt may have at most ${SALT_BYTES_MAX} bytes.`, RangeError);
}

function tooCostly(): never {
  return refuse(
    'ERR_OUT_OF_RANGE',
    'The parameters ask for more work than a script may do.',
    RangeError,
  );
}

/** Values: how many bytes. */
export function random(question: Question): Answer {
  return { bytes: [crypto.randomBytes(question.integer(0, 0, RANDOM_BYTES_MAX))] };
}

/** Values: the least one, and the one above the greatest. */
export function randomInteger(question: Question): Answer {
  const min = question.integer(0, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  const max = question.integer(1, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  return { value: crypto.randomInt(min, max) };
}

export function randomUuid(): Answer {
  return { value: crypto.randomUUID() };
}

/** Values: which list. */
export function names(question: Question): Answer {
  const which = textOrNone(question.value(0));
  if (which === 'hashes') return { value: crypto.getHashes() };
  return which === 'curves' ? { value: crypto.getCurves() } : wrongArgument();
}
