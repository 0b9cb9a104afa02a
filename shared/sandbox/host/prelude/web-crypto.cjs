/** The global `crypto` (Web Cryptography API): promises around operations that the host does at once. */
const { ask, fail, piece, viewOf } = require('node-crypto-bridge');
const { DIGESTS, algorithmOf, bufferPiece, digestName, operate, refuse } =
  require('web-crypto-algorithms');
const keys = require('web-crypto-keys');
const operations = require('web-crypto-operations');

const RANDOM_BYTES_MAX = 65_536;
const CONSTRUCT = Symbol('construct');

/** An ArrayBuffer of exactly these bytes. */
function exact(buffer) {
  const { byteOffset, byteLength } = buffer;
  return buffer.buffer.byteLength === byteLength
    ? buffer.buffer
    : buffer.buffer.slice(byteOffset, byteOffset + byteLength);
}

/** The algorithm as the API spells it, when the key is one of it and may be used for this. */
function allowed(given, key, usage) {
  const algorithm = algorithmOf(given);
  if (keys.keyObjectOf(key) === undefined) {
    fail('ERR_INVALID_ARG_TYPE', 'The key must be a CryptoKey.');
  }
  if (key.algorithm.name !== algorithm.name) refuse('InvalidAccessError', 'Key algorithm mismatch');
  if (!key.usages.includes(usage)) {
    refuse('InvalidAccessError', `Unable to use this key to ${usage}`);
  }
  return algorithm;
}

class SubtleCrypto {
  constructor(token) {
    if (token !== CONSTRUCT) fail('ERR_ILLEGAL_CONSTRUCTOR', 'Illegal constructor');
  }

  async digest(given, data) {
    const { name } = algorithmOf(given);
    if (DIGESTS[name] === undefined) refuse('NotSupportedError', 'Unrecognized algorithm name');
    const part = bufferPiece(data, 'data');
    return exact(operate(() => ask('hash', [digestName({ name }), null, null], [part]).bytes[0]));
  }

  async sign(given, key, data) {
    const algorithm = allowed(given, key, 'sign');
    const part = bufferPiece(data, 'data');
    return exact(operate(() => operations.sign(algorithm, key, part)));
  }

  async verify(given, key, signature, data) {
    const algorithm = allowed(given, key, 'verify');
    const part = bufferPiece(data, 'data');
    bufferPiece(signature, 'signature');
    return operate(() => operations.verify(algorithm, key, signature, part));
  }

  async encrypt(given, key, data) {
    const algorithm = allowed(given, key, 'encrypt');
    const part = bufferPiece(data, 'data');
    return exact(operate(() => operations.crypt(true, algorithm, key, part)));
  }

  async decrypt(given, key, data) {
    const algorithm = allowed(given, key, 'decrypt');
    const part = bufferPiece(data, 'data');
    return exact(operate(() => operations.crypt(false, algorithm, key, part)));
  }

  async deriveBits(given, key, length = null) {
    const algorithm = allowed(given, key, 'deriveBits');
    return exact(operate(() => operations.deriveBits(algorithm, key, length)));
  }

  async deriveKey(given, key, wanted, extractable, usages) {
    const algorithm = allowed(given, key, 'deriveKey');
    const made = algorithmOf(wanted);
    const bits = operate(() => operations.deriveBits(algorithm, key, operations.lengthOf(made)));
    return keys.importKey('raw', bits, made, extractable, usages);
  }

  async importKey(format, data, algorithm, extractable, usages) {
    return keys.importKey(format, data, algorithm, extractable, usages);
  }

  async exportKey(format, key) {
    const exported = keys.exportKey(format, key);
    return viewOf(exported) === undefined ? exported : exact(exported);
  }

  async generateKey(algorithm, extractable, usages) {
    return operate(() => keys.generateKey(algorithm, extractable, usages));
  }

  async wrapKey(format, key, wrappingKey, given) {
    const algorithm = allowed(given, wrappingKey, 'wrapKey');
    const exported = keys.exportKey(format, key);
    const isJwk = viewOf(exported) === undefined;
    const part = isJwk ? jwkPiece(exported, algorithm) : piece(exported);
    return exact(operate(() => operations.crypt(true, algorithm, wrappingKey, part)));
  }

  async unwrapKey(format, wrapped, unwrappingKey, given, keyAlgorithm, extractable, usages) {
    const algorithm = allowed(given, unwrappingKey, 'unwrapKey');
    const part = bufferPiece(wrapped, 'wrappedKey');
    const bytes = operate(() => operations.crypt(false, algorithm, unwrappingKey, part));
    const data = format === 'jwk' ? JSON.parse(bytes.toString()) : bytes;
    return keys.importKey(format, data, keyAlgorithm, extractable, usages);
  }

  get [Symbol.toStringTag]() {
    return 'SubtleCrypto';
  }
}

/** AES-KW wraps multiples of eight bytes: spaces fill up the text. */
function jwkPiece(jwk, { name }) {
  const text = JSON.stringify(jwk);
  const length = name === 'AES-KW' ? Math.ceil(text.length / 8) * 8 : text.length;
  return { text: text.padEnd(length), encoding: 'latin1' };
}

const INTEGERS = new Set([
  ...['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array'],
  ...['Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array'],
]);
const typedArrayName = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
).get;

function getRandomValues(array) {
  const view = viewOf(array);
  if (view === undefined || !INTEGERS.has(Reflect.apply(typedArrayName, array, []))) {
    refuse('TypeMismatchError', 'The data argument must be an integer-type TypedArray');
  }
  if (view.length > RANDOM_BYTES_MAX) {
    refuse('QuotaExceededError', `The requested length exceeds ${RANDOM_BYTES_MAX} bytes`);
  }
  view.set(ask('random', [view.length]).bytes[0]);
  return array;
}

class Crypto {
  #subtle = new SubtleCrypto(CONSTRUCT);

  constructor(token) {
    if (token !== CONSTRUCT) fail('ERR_ILLEGAL_CONSTRUCTOR', 'Illegal constructor');
  }

  get subtle() {
    return this.#subtle;
  }

  getRandomValues(array) {
    return getRandomValues(array);
  }

  randomUUID() {
    return ask('random_uuid', []).value;
  }

  get [Symbol.toStringTag]() {
    return 'Crypto';
  }
}

const crypto = new Crypto(CONSTRUCT);
Object.assign(exports, {
  ...{ Crypto, CryptoKey: keys.CryptoKey, SubtleCrypto, crypto, getRandomValues },
  ...{ webcrypto: crypto, subtle: crypto.subtle },
});
