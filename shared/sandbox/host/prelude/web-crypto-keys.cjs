/** `CryptoKey`, and how `subtle` imports, exports and generates them. */
const { Buffer, ask, fail, piece, viewOf } = require('node-crypto-bridge');
const keys = require('crypto-keys');
const { CURVES, PAIRS, SECRETS, algorithmOf, refuse, usagesOf } = require('web-crypto-algorithms');

/** Only the prelude makes keys. */
const INSIDE = Symbol('inside');
/** Bits of a block: the length of an HMAC key when none is asked for. */
const BLOCK_BITS = { __proto__: null, 'SHA-384': 1024, 'SHA-512': 1024, 'SHA3-256': 1088 };
const HMAC_BITS_MAX = 65_536;
const FORMATS = ['jwk', 'pkcs8', 'raw', 'raw-public', 'raw-secret', 'spki'];

class CryptoKey {
  #keyObject;
  #algorithm;
  #extractable;
  #usages;

  constructor(token, keyObject, algorithm, extractable, usages) {
    if (token !== INSIDE) fail('ERR_ILLEGAL_CONSTRUCTOR', 'Illegal constructor');
    this.#keyObject = keyObject;
    this.#algorithm = algorithm;
    this.#extractable = extractable;
    this.#usages = usages;
  }

  static keyObjectOf(value) {
    return typeof value === 'object' && value !== null && #keyObject in value
      ? value.#keyObject
      : undefined;
  }

  get type() {
    return this.#keyObject.type;
  }

  get extractable() {
    return this.#extractable;
  }

  get algorithm() {
    return this.#algorithm;
  }

  get usages() {
    return [...this.#usages];
  }

  get [Symbol.toStringTag]() {
    return 'CryptoKey';
  }
}
const { keyObjectOf } = CryptoKey;

function dataError(message = 'Invalid key data') {
  refuse('DataError', message);
}

/** Errors of the host while it reads a key are the data's fault. */
function reading(work) {
  try {
    return work();
  } catch {
    return dataError();
  }
}

function importKey(format, data, given, extractable, usages) {
  const algorithm = algorithmOf(given);
  if (!FORMATS.includes(format)) fail('ERR_INVALID_ARG_VALUE', 'Unknown key format.');
  if (extractable && (algorithm.name === 'PBKDF2' || algorithm.name === 'HKDF')) {
    refuse('SyntaxError', 'Keys to derive from cannot be extractable.');
  }
  if (format === 'jwk') checkJwk(data, extractable, usages);
  const keyObject =
    SECRETS[algorithm.name] === undefined
      ? importPair(format, data, algorithm)
      : importSecret(format, data, algorithm.name);
  return fromKeyObject(keyObject, algorithm, extractable, usages);
}

function checkJwk(jwk, extractable, usages) {
  if (typeof jwk !== 'object' || jwk === null || viewOf(jwk) !== undefined) {
    fail('ERR_INVALID_ARG_TYPE', 'The key data must be a JsonWebKey.');
  }
  if (jwk.ext === false && extractable) dataError('JWK "ext" Parameter and extractable mismatch');
  if (jwk.key_ops !== undefined && ![...usages].every((usage) => jwk.key_ops.includes(usage))) {
    dataError('Key operations and usage mismatch');
  }
}

function importSecret(format, data, name) {
  if (format === 'jwk' && name !== 'PBKDF2' && name !== 'HKDF') {
    if (data.kty !== 'oct' || typeof data.k !== 'string') dataError('Invalid JWK "kty" Parameter');
    return keys.createSecretKey(data.k, 'base64url');
  }
  if (format !== 'raw' && format !== 'raw-secret') unsupportedFormat();
  return keys.createSecretKey(bytesOf(data));
}

function unsupportedFormat() {
  refuse('NotSupportedError', 'The key format is not supported for this algorithm.');
}

function bytesOf(data) {
  const view = viewOf(data);
  if (view === undefined) fail('ERR_INVALID_ARG_TYPE', 'The key data must be a BufferSource.');
  return view;
}

function importPair(format, data, { name, namedCurve }) {
  if (format === 'raw' || format === 'raw-public') {
    const key = rawJwk(name, namedCurve, bytesOf(data));
    return reading(() => keys.createPublicKey({ key, format: 'jwk' }));
  }
  if (format === 'jwk') {
    const create = data.d === undefined ? keys.createPublicKey : keys.createPrivateKey;
    return reading(() => create({ key: data, format }));
  }
  if (format !== 'spki' && format !== 'pkcs8') unsupportedFormat();
  const create = format === 'spki' ? keys.createPublicKey : keys.createPrivateKey;
  const key = Buffer.from(bytesOf(data));
  return reading(() => create({ key, format: 'der', type: format }));
}

function rawJwk(name, namedCurve, bytes) {
  if (name.startsWith('RSA')) unsupportedFormat();
  if (!name.startsWith('EC'))
    return { kty: 'OKP', crv: name, x: Buffer.from(bytes).toString('base64url') };
  const curve = CURVES[namedCurve] ?? dataError('Unrecognized namedCurve');
  const [point] = reading(() => ask('ecdh_convert', [curve, 'uncompressed'], [piece(bytes)])).bytes;
  const half = (point.length - 1) / 2;
  const [x, y] = [point.subarray(1, 1 + half), point.subarray(1 + half)];
  return { kty: 'EC', crv: namedCurve, x: x.toString('base64url'), y: y.toString('base64url') };
}

/** A CryptoKey of a KeyObject, when it is a key of that algorithm. */
function fromKeyObject(keyObject, given, extractable, usages) {
  const algorithm = algorithmOf(given);
  const described = describe(keyObject, algorithm);
  const allowed = usagesOf(algorithm.name, keyObject.type, usages);
  const isExtractable = keyObject.type === 'public' || Boolean(extractable);
  return new CryptoKey(INSIDE, keyObject, described, isExtractable, allowed);
}

function describe(keyObject, { name, hash, namedCurve, length }) {
  const details = keyObject.asymmetricKeyDetails ?? {};
  if (SECRETS[name] !== undefined) return describeSecret(keyObject, name, hash, length);
  if (name.startsWith('RSA')) {
    if (keyObject.asymmetricKeyType !== 'rsa') dataError('Invalid key type');
    if (hash === undefined) fail('ERR_MISSING_OPTION', 'The algorithm needs a hash.');
    const publicExponent = exponentBytes(details.publicExponent);
    return { name, modulusLength: details.modulusLength, publicExponent, hash };
  }
  if (name.startsWith('EC')) {
    const isCurve = CURVES[namedCurve] !== undefined && details.namedCurve === CURVES[namedCurve];
    if (keyObject.asymmetricKeyType !== 'ec' || !isCurve) dataError('Named curve mismatch');
    return { name, namedCurve };
  }
  if (keyObject.asymmetricKeyType !== name.toLowerCase()) dataError('Invalid key type');
  return { name };
}

function describeSecret(keyObject, name, hash, length) {
  if (keyObject.type !== 'secret') dataError('Invalid key type');
  const bits = keyObject.symmetricKeySize * 8;
  if (name.startsWith('AES')) {
    if (![128, 192, 256].includes(bits)) dataError('Invalid key length');
    return { name, length: bits };
  }
  if (name !== 'HMAC') return { name };
  if (hash === undefined) fail('ERR_MISSING_OPTION', 'The algorithm needs a hash.');
  if (bits === 0 || (length !== undefined && length !== bits)) dataError('Invalid key length');
  return { name, length: bits, hash };
}

function exponentBytes(exponent) {
  const hex = exponent.toString(16);
  return new Uint8Array(Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex'));
}

function exponentNumber(bytes) {
  const view =
    viewOf(bytes) ?? fail('ERR_INVALID_ARG_TYPE', 'publicExponent must be a Uint8Array.');
  return view.reduce((number, byte) => number * 256 + byte, 0);
}

/** Bits of a key to generate or derive; `null` when the algorithm takes what it gets. */
function lengthOf({ name, length, hash }) {
  if (name.startsWith('AES')) {
    if ([128, 192, 256].includes(length)) return length;
    return refuse('OperationError', 'Invalid key length');
  }
  if (name !== 'HMAC') return null;
  const bits = length ?? BLOCK_BITS[hash?.name] ?? 512;
  const fits = Number.isInteger(bits) && bits > 0 && bits % 8 === 0 && bits <= HMAC_BITS_MAX;
  return fits ? bits : refuse('OperationError', 'Invalid key length');
}

function generateKey(given, extractable, usages) {
  const algorithm = algorithmOf(given);
  const { name, namedCurve, modulusLength, publicExponent } = algorithm;
  if (SECRETS[name] !== undefined) {
    const length =
      lengthOf(algorithm) ?? refuse('NotSupportedError', 'Unrecognized algorithm name');
    const secret = keys.createSecretKey(ask('random', [length / 8]).bytes[0]);
    return fromKeyObject(secret, algorithm, extractable, usages);
  }
  if (PAIRS[name] === undefined) refuse('NotSupportedError', 'Unrecognized algorithm name');
  const [privateObject, publicObject] = name.startsWith('RSA')
    ? keys.generatePair('rsa', { modulusLength, publicExponent: exponentNumber(publicExponent) })
    : keys.generatePair(...pairOptions(name, namedCurve));
  return pairOf(publicObject, privateObject, algorithm, extractable, [...usages]);
}

function pairOptions(name, namedCurve) {
  if (!name.startsWith('EC')) return [name.toLowerCase()];
  return [
    'ec',
    { namedCurve: CURVES[namedCurve] ?? refuse('NotSupportedError', 'Unrecognized namedCurve') },
  ];
}

function pairOf(publicObject, privateObject, algorithm, extractable, usages) {
  const [forPublic, forPrivate] = PAIRS[algorithm.name];
  // Each half gets what it can do; what neither can do is refused with the private half.
  const open = usages.filter((usage) => forPublic.includes(usage));
  const own = usages.filter((usage) => forPrivate.includes(usage) || !open.includes(usage));
  return {
    publicKey: fromKeyObject(publicObject, algorithm, true, open),
    privateKey: fromKeyObject(privateObject, algorithm, extractable, own),
  };
}

const SUFFIXES = {
  __proto__: null,
  'SHA-1': '1',
  'SHA-256': '256',
  'SHA-384': '384',
  'SHA-512': '512',
};

/** The `alg` of a key as JWK, when it has one (RFC 7518). */
function jwkAlgorithm({ name, length, hash }) {
  const suffix = SUFFIXES[hash?.name];
  if (name.startsWith('AES')) return `A${length}${name.slice(4)}`;
  if (suffix === undefined) return undefined;
  if (name === 'HMAC') return `HS${suffix}`;
  if (name === 'RSA-OAEP') return suffix === '1' ? name : `${name}-${suffix}`;
  return name === 'RSA-PSS' ? `PS${suffix}` : `RS${suffix}`;
}

/** A JWK, or bytes. */
function exportKey(format, key) {
  const keyObject = keyObjectOf(key);
  if (keyObject === undefined) fail('ERR_INVALID_ARG_TYPE', 'The key must be a CryptoKey.');
  if (!key.extractable) refuse('InvalidAccessError', 'key is not extractable');
  if (format === 'jwk') {
    const alg = jwkAlgorithm(key.algorithm);
    const named = alg === undefined ? {} : { alg };
    const members = keyObject.export({ format: 'jwk' });
    return { key_ops: key.usages, ext: key.extractable, ...named, ...members };
  }
  if (keyObject.type === 'secret' && (format === 'raw' || format === 'raw-secret')) {
    return keyObject.export();
  }
  if (keyObject.type === 'public' && (format === 'raw' || format === 'raw-public')) {
    return rawPublic(keyObject);
  }
  const type = { __proto__: null, public: 'spki', private: 'pkcs8' }[keyObject.type];
  if (format !== type) unsupportedFormat();
  return keyObject.export({ format: 'der', type });
}

function rawPublic(keyObject) {
  if (keyObject.asymmetricKeyType === 'rsa') unsupportedFormat();
  const { x, y } = keyObject.export({ format: 'jwk' });
  if (y === undefined) return Buffer.from(x, 'base64url');
  return Buffer.concat([
    Buffer.from([4]),
    Buffer.from(x, 'base64url'),
    Buffer.from(y, 'base64url'),
  ]);
}

Object.assign(exports, {
  ...{ CryptoKey, exportKey, fromKeyObject, generateKey, importKey, keyObjectOf, lengthOf },
});
