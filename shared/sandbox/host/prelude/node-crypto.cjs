/**
 * The module `crypto`: what of Node's module works without files, engines and a process. Each group of
 * functions is built when the first of it is read, so that one HMAC does not pay for keys and ciphers.
 */

/** OpenSSL's numbers. */
const constants = {
  __proto__: null,
  ...{ RSA_PKCS1_PADDING: 1, RSA_NO_PADDING: 3, RSA_PKCS1_OAEP_PADDING: 4 },
  ...{ RSA_X931_PADDING: 5, RSA_PKCS1_PSS_PADDING: 6 },
  ...{ RSA_PSS_SALTLEN_DIGEST: -1, RSA_PSS_SALTLEN_MAX_SIGN: -2, RSA_PSS_SALTLEN_AUTO: -2 },
  ...{ POINT_CONVERSION_COMPRESSED: 2, POINT_CONVERSION_UNCOMPRESSED: 4 },
  POINT_CONVERSION_HYBRID: 6,
};

const GROUPS = {
  'node-crypto-hash': [
    ...['createHash', 'createHmac', 'Hash', 'Hmac', 'hash', 'timingSafeEqual'],
    ...['pbkdf2', 'pbkdf2Sync', 'scrypt', 'scryptSync', 'hkdf', 'hkdfSync', 'randomUUID'],
    ...['randomBytes', 'pseudoRandomBytes', 'randomFill', 'randomFillSync', 'randomInt'],
    ...['getHashes', 'getCurves'],
  ],
  'node-crypto-cipher': [
    ...['createCipheriv', 'createDecipheriv', 'Cipheriv', 'Decipheriv'],
    ...['getCipherInfo', 'getCiphers'],
  ],
  'crypto-keys': [
    ...['KeyObject', 'createPrivateKey', 'createPublicKey', 'createSecretKey'],
    ...['generateKey', 'generateKeySync', 'generateKeyPair', 'generateKeyPairSync'],
  ],
  'node-crypto-sign': [
    ...['createSign', 'createVerify', 'Sign', 'Verify', 'sign', 'verify', 'diffieHellman'],
    ...['publicEncrypt', 'publicDecrypt', 'privateEncrypt', 'privateDecrypt'],
    ...['createECDH', 'ECDH'],
  ],
  'web-crypto': ['webcrypto', 'subtle', 'getRandomValues'],
};

function lazily(name, file) {
  const shape = { configurable: true, enumerable: true };
  const set = (value) =>
    Object.defineProperty(module.exports, name, { value, writable: true, ...shape });
  const get = () => {
    const value = require(file)[name];
    set(value);
    return value;
  };
  Object.defineProperty(module.exports, name, { get, set, ...shape });
}
for (const file of Object.keys(GROUPS)) {
  for (const name of GROUPS[file]) lazily(name, file);
}
module.exports.constants = constants;
module.exports.getFips = () => 0;
