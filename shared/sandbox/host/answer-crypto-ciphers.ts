/**
 * Symmetric ciphers for scripts. The host keeps no cipher between calls: each call carries all input so far
 * and says how many bytes of output it already has.
 */
import crypto from 'node:crypto';
import {
  type Answer,
  INPUT_BYTES_MAX,
  integerOrNone,
  type Question,
  refuse,
  wrongArgument,
} from './answer-crypto-frames.ts';

/** AES in its modes, ChaCha20 and triple DES. Not the bitwise modes, which cost a block for each bit. */
const CIPHER_NAME =
  /^(?:aes-(?:128|192|256)-(?:cbc|ctr|gcm|ecb|ccm|cfb|cfb8|ofb|ocb)|aes-(?:128|256)-xts|aes(?:128|192|256)|(?:id-)?aes(?:128|192|256)-(?:wrap|wrap-pad|gcm|ccm)|chacha20|chacha20-poly1305|des-ede3?(?:-cbc|-ecb|-cfb|-ofb)?|des3)$/;
const KEY_BYTES_MAX = 64;
const IV_BYTES_MAX = 1024;
const TAG_BYTES_MAX = 16;
/** What is wrapped is a key; wrapping costs six passes, and more than other modes in each. */
const WRAPPED_BYTES_MAX = 64 * 1024;

/**
 * Values: name, encrypt?, last?, bytes of output had, options, has input? (also an empty one counts).
 * Pieces: key, iv, aad, tag, input. The rest of the output, and the tag when there is one.
 */
export function cipher(question: Question): Answer {
  const encrypts = question.flag(1);
  const made = create(question, encrypts);
  const input = question.rest(4);
  if (/wrap/.test(cipherName(question.value(0)))) short(input, WRAPPED_BYTES_MAX);
  const parts = input.length > 0 || question.flag(5) ? [made.update(input)] : [];
  if (question.flag(2)) parts.push(made.final());
  const output = Buffer.concat(parts).subarray(question.integer(3, 0, 2 * INPUT_BYTES_MAX));
  const tagged = question.flag(2) && encrypts && 'getAuthTag' in made && isAuthenticated(question);
  return { bytes: tagged ? [output, made.getAuthTag()] : [output] };
}

/** A cipher of any mode; only those that authenticate have both of the last two. */
type AnyCipher = crypto.CipherGCM | crypto.DecipherGCM;

function create(question: Question, encrypts: boolean): AnyCipher {
  const name = cipherName(question.value(0));
  const key = short(question.bytes(0), KEY_BYTES_MAX);
  const iv = question.bytesOrNone(1);
  if (iv !== undefined) short(iv, IV_BYTES_MAX);
  const authTagLength = integerOrNone(question.option(4, 'authTagLength'), 1, TAG_BYTES_MAX);
  const options: crypto.CipherGCMOptions = authTagLength === undefined ? {} : { authTagLength };
  // What a mode has no use for is refused or ignored by Node; the types know the modes by name only.
  const made = (
    encrypts
      ? crypto.createCipheriv(name, key, iv ?? null, options)
      : crypto.createDecipheriv(name, key, iv ?? null, options)
  ) as AnyCipher;
  const padding = question.option(4, 'autoPadding');
  if (typeof padding === 'boolean') made.setAutoPadding(padding);
  const tag = question.bytesOrNone(3);
  if (tag !== undefined && 'setAuthTag' in made) made.setAuthTag(tag);
  authenticate(made, question);
  return made;
}

function authenticate(made: AnyCipher, question: Question): void {
  const data = question.bytesOrNone(2);
  if (data === undefined) return;
  const given = question.option(4, 'plaintextLength');
  const plaintextLength = integerOrNone(given, 0, INPUT_BYTES_MAX);
  made.setAAD(data, plaintextLength === undefined ? undefined : { plaintextLength });
}

function isAuthenticated(question: Question): boolean {
  return /gcm|ccm|ocb|poly1305/.test(cipherName(question.value(0)));
}

/** A cipher that scripts may use. */
export function cipherName(value: unknown): string {
  const name = typeof value === 'string' ? value.toLowerCase() : wrongArgument();
  if (CIPHER_NAME.test(name)) return name;
  return refuse('ERR_CRYPTO_UNKNOWN_CIPHER', 'Unknown cipher');
}

function short(bytes: Buffer, bytes_max: number): Buffer {
  if (bytes.length <= bytes_max) return bytes;
  return refuse('ERR_CRYPTO_INVALID_KEYLEN', 'Invalid key or vector length', RangeError);
}

export function cipherNames(): Answer {
  return { value: crypto.getCiphers().filter((name) => CIPHER_NAME.test(name.toLowerCase())) };
}

/** Values: name, bytes of key and of vector or null. Value: what Node tells of it, or null. */
export function cipherInfo(question: Question): Answer {
  const name = question.text(0).toLowerCase();
  if (!CIPHER_NAME.test(name)) return {};
  const keyLength = integerOrNone(question.value(1) ?? undefined, 0, KEY_BYTES_MAX);
  const ivLength = integerOrNone(question.value(2) ?? undefined, 0, IV_BYTES_MAX);
  const info = crypto.getCipherInfo(name, {
    ...(keyLength === undefined ? {} : { keyLength }),
    ...(ivLength === undefined ? {} : { ivLength }),
  });
  return { value: info === undefined ? null : { ...info } };
}
