/**
 * Keys inside: `KeyObject` is the key's bytes (raw, PKCS #8 or SPKI) and what the host told of it. Any other
 * form that Node takes for a key goes to the host as it is, in one call with the operation.
 */
const { Buffer, ask, fail, later, piece, toText, viewOf } = require('node-crypto-bridge');

const PEM = { format: 'pem' };
/** Only the prelude makes keys out of parts. */
const INSIDE = Symbol('inside');
const PROMISIFIED = Symbol.for('nodejs.util.promisify.custom');

const bytesPiece = (bytes) => ({ text: toText(bytes), encoding: 'latin1' });

class KeyObject {
  #type;
  #kind;
  #details;
  #bytes;

  constructor(token, { type, kind, details, bytes }) {
    if (token !== INSIDE) fail(undefined, 'Illegal constructor');
    this.#type = type;
    this.#kind = kind;
    this.#details = details;
    this.#bytes = bytes;
  }

  static from(key) {
    const found = keyObjectOf(key);
    if (found !== undefined) return found;
    return fail('ERR_INVALID_ARG_TYPE', 'The "key" argument must be an instance of CryptoKey.');
  }

  static isKeyObject(value) {
    return typeof value === 'object' && value !== null && #bytes in value;
  }

  static bytesOf(key) {
    return key.#bytes;
  }

  get type() {
    return this.#type;
  }

  get symmetricKeySize() {
    return this.#type === 'secret' ? this.#bytes.length : undefined;
  }

  get asymmetricKeyType() {
    return this.#kind;
  }

  get asymmetricKeyDetails() {
    return this.#type === 'secret' ? undefined : { ...this.#details };
  }

  export(options) {
    if (this.#type === 'secret') {
      if (options?.format !== 'jwk') return Buffer.from(this.#bytes);
      return { kty: 'oct', k: this.#bytes.toString('base64url') };
    }
    if (typeof options !== 'object' || options === null) {
      fail('ERR_INVALID_ARG_TYPE', 'The "options" argument must be of type object.');
    }
    return exportWith(this, options);
  }

  equals(other) {
    if (!KeyObject.isKeyObject(other)) {
      fail(
        'ERR_INVALID_ARG_TYPE',
        'The "otherKeyObject" argument must be an instance of KeyObject.',
      );
    }
    return this.#type === other.#type && this.#bytes.equals(other.#bytes);
  }

  toCryptoKey(algorithm, extractable, usages) {
    return require('web-crypto-keys').fromKeyObject(this, algorithm, extractable, usages);
  }

  get [Symbol.toStringTag]() {
    return 'KeyObject';
  }
}

function exportWith(key, { format = 'pem', type, cipher, passphrase }) {
  const { spec, pieces } = keyObjectInput(key);
  const secret = passphrase === undefined ? undefined : piece(passphrase, 'utf8', 'passphrase');
  const given = key.type === 'public' && type === undefined ? 'spki' : type;
  const values = [spec, key.type === 'private', { format, type: given, cipher }];
  const { value, bytes } = ask('export_key', values, [...pieces, secret]);
  return value ?? bytes[0];
}

/** Of the host's answer: its list of descriptions, with the bytes of each. */
function keysOf({ value, bytes }) {
  return value.map(({ type, kind, details }, index) => {
    for (const name of Object.keys(details)) {
      if (details[name]?.bigint !== undefined) details[name] = BigInt(details[name].bigint);
    }
    return new KeyObject(INSIDE, { type, kind, details, bytes: bytes[index] });
  });
}

/** A KeyObject, also the one behind a CryptoKey. */
function keyObjectOf(value) {
  if (KeyObject.isKeyObject(value)) return value;
  return value?.[Symbol.toStringTag] === 'CryptoKey'
    ? require('web-crypto-keys').keyObjectOf(value)
    : undefined;
}

function keyObjectInput(key) {
  if (key.type === 'secret') {
    fail('ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE', 'Invalid key object type secret.');
  }
  const type = key.type === 'private' ? 'pkcs8' : 'spki';
  return { spec: { format: 'der', type }, pieces: [bytesPiece(KeyObject.bytesOf(key)), undefined] };
}

/** What Node takes for an asymmetric key, as values and pieces of a question. */
function keyInput(input, isNested = false) {
  const known = keyObjectOf(input);
  if (known !== undefined) return keyObjectInput(known);
  if (typeof input === 'string' || viewOf(input) !== undefined) {
    return { spec: PEM, pieces: [piece(input, 'utf8', 'key'), undefined] };
  }
  if (typeof input !== 'object' || input === null || isNested) {
    fail(
      'ERR_INVALID_ARG_TYPE',
      'The "key" argument must be of type string or object, or an instance of Buffer, KeyObject, or CryptoKey.',
    );
  }
  return optionsInput(input);
}

function optionsInput({ key, format = 'pem', type, passphrase, encoding }) {
  if (format === 'jwk') return { spec: { format }, pieces: [jwkPiece(key), undefined] };
  if (format !== 'pem' && format !== 'der') {
    fail('ERR_INVALID_ARG_VALUE', "The property 'options.format' is invalid.");
  }
  const isBytes = typeof key === 'string' || viewOf(key) !== undefined;
  if (!isBytes) return keyInput(key, true);
  const secret = passphrase === undefined ? undefined : piece(passphrase, 'utf8', 'passphrase');
  return { spec: { format, type }, pieces: [piece(key, encoding, 'key'), secret] };
}

function jwkPiece(jwk) {
  if (typeof jwk !== 'object' || jwk === null) {
    fail('ERR_INVALID_ARG_TYPE', 'The "key.key" property must be of type object.');
  }
  return { text: JSON.stringify(jwk), encoding: 'utf8' };
}

/** The bytes of a secret key as a piece: text, bytes, a secret KeyObject or CryptoKey. */
function secretPiece(key, encoding) {
  const known = keyObjectOf(key);
  if (known === undefined) return piece(key, encoding, 'key');
  if (known.type !== 'secret') {
    fail(
      'ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE',
      `Invalid key object type ${known.type}, expected secret.`,
    );
  }
  return bytesPiece(KeyObject.bytesOf(known));
}

function createSecretKey(key, encoding) {
  const bytes =
    typeof key === 'string' ? Buffer.from(key, encoding) : Buffer.from(viewOf(key) ?? missing());
  return new KeyObject(INSIDE, { type: 'secret', bytes });
}

function missing() {
  fail(
    'ERR_INVALID_ARG_TYPE',
    'The "key" argument must be of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView.',
  );
}

function createKey(input, isPrivate) {
  const { spec, pieces } = keyInput(input);
  return keysOf(ask('import_key', [spec, isPrivate], pieces))[0];
}

function encodedPair([privateKey, publicKey], { publicKeyEncoding, privateKeyEncoding } = {}) {
  return {
    publicKey: publicKeyEncoding === undefined ? publicKey : publicKey.export(publicKeyEncoding),
    privateKey:
      privateKeyEncoding === undefined ? privateKey : privateKey.export(privateKeyEncoding),
  };
}

/** A pair of the kind and its options, as KeyObjects. */
function generatePair(kind, { modulusLength, publicExponent, namedCurve, hashAlgorithm } = {}) {
  const options = { modulusLength, publicExponent, namedCurve, hashAlgorithm };
  return keysOf(ask('generate_keys', [`${kind}`, options]));
}

const generateKeyPairSync = (kind, options) => encodedPair(generatePair(kind, options), options);

function generateKeyPair(kind, options, callback) {
  const [given, done] = callback === undefined ? [undefined, options] : [options, callback];
  later(done, () => {
    const { publicKey, privateKey } = generateKeyPairSync(kind, given);
    return [publicKey, privateKey];
  });
}
generateKeyPair[PROMISIFIED] = async (kind, options) => generateKeyPairSync(kind, options);

function generateKeySync(kind, { length } = {}) {
  const fits = kind === 'aes' ? [128, 192, 256].includes(length) : length >= 8 && length <= 65_536;
  if (kind !== 'aes' && kind !== 'hmac') {
    fail('ERR_INVALID_ARG_VALUE', "The argument 'type' must be a supported key type.");
  }
  if (!fits) {
    fail(
      kind === 'aes' ? 'ERR_INVALID_ARG_VALUE' : 'ERR_OUT_OF_RANGE',
      "The property 'options.length' is invalid.",
      kind === 'aes' ? 'TypeError' : 'RangeError',
    );
  }
  const [bytes] = ask('random', [Math.floor(length / 8)]).bytes;
  return new KeyObject(INSIDE, { type: 'secret', bytes });
}

Object.assign(exports, {
  ...{ KeyObject, keyInput, keyObjectOf, secretPiece, generatePair },
  ...{ createSecretKey, generateKeyPairSync, generateKeyPair, generateKeySync },
  createPrivateKey: (input) => createKey(input, true),
  createPublicKey: (input) => createKey(input, false),
  generateKey: (kind, options, callback) => later(callback, () => [generateKeySync(kind, options)]),
});
