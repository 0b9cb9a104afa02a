/** Signatures, RSA encryption and key agreement of Node's `crypto`. */
const { Buffer, Pieces, ask, fail, later, output, piece, toText } = require('node-crypto-bridge');
const { keyInput, keyObjectOf } = require('crypto-keys');

/** The options that may stand beside a key. */
function optionsOf(input) {
  if (typeof input !== 'object' || input === null || keyObjectOf(input) !== undefined) return {};
  const { padding, saltLength, dsaEncoding, oaepHash } = input;
  return { padding, saltLength, dsaEncoding, oaepHash };
}

function signPiece(digest, data, key) {
  const { spec, pieces } = keyInput(key);
  return ask('sign', [digest ?? null, spec, optionsOf(key)], [...pieces, data]).bytes[0];
}

function verifyPiece(digest, data, key, signature) {
  const { spec, pieces } = keyInput(key);
  const values = [digest ?? null, spec, optionsOf(key)];
  return ask('verify', values, [...pieces, data, signature]).value;
}

const signSync = (digest, data, key) => signPiece(digest, piece(data), key);
const verifySync = (digest, data, key, signature) =>
  verifyPiece(digest, piece(data), key, piece(signature, 'latin1', 'signature'));

function sign(digest, data, key, callback) {
  if (callback === undefined) return signSync(digest, data, key);
  return later(callback, () => [signSync(digest, data, key)]);
}

function verify(digest, data, key, signature, callback) {
  if (callback === undefined) return verifySync(digest, data, key, signature);
  return later(callback, () => [verifySync(digest, data, key, signature)]);
}

/** Gathers what `update` gets; all of it goes to the host at the end. */
class Gathering {
  #pieces = new Pieces();
  #digest;
  #done = false;

  constructor(digest) {
    if (typeof digest !== 'string') {
      fail('ERR_INVALID_ARG_TYPE', 'The "algorithm" argument must be of type string.');
    }
    ask('hash', [digest, null, null]);
    this.#digest = digest;
  }

  get digest() {
    return this.#digest;
  }

  update(data, encoding) {
    const part = typeof data === 'string' ? piece(Buffer.from(data, encoding)) : piece(data);
    this.#pieces.add(part);
    return this;
  }

  /** One piece. Only once. */
  take() {
    if (this.#done) fail('ERR_CRYPTO_INVALID_STATE', 'Not initialised', 'Error');
    this.#done = true;
    return this.#pieces.all[0] ?? { text: '', encoding: 'latin1' };
  }
}

class Sign {
  #gathering;

  constructor(digest) {
    this.#gathering = new Gathering(digest);
  }

  update(data, encoding) {
    this.#gathering.update(data, encoding);
    return this;
  }

  sign(key, encoding) {
    if (!key) fail('ERR_CRYPTO_SIGN_KEY_REQUIRED', 'No key provided to sign', 'Error');
    return output(signPiece(this.#gathering.digest, this.#gathering.take(), key), encoding);
  }
}

class Verify {
  #gathering;

  constructor(digest) {
    this.#gathering = new Gathering(digest);
  }

  update(data, encoding) {
    this.#gathering.update(data, encoding);
    return this;
  }

  verify(key, signature, encoding) {
    const given = piece(signature, encoding, 'signature');
    return verifyPiece(this.#gathering.digest, this.#gathering.take(), key, given);
  }
}

const rsa = (way) => (key, data) => {
  const { spec, pieces } = keyInput(key);
  const label =
    key?.oaepLabel === undefined ? undefined : piece(key.oaepLabel, 'utf8', 'oaepLabel');
  const asked = [...pieces, label, piece(data, key?.encoding, 'buffer')];
  return ask('encrypt_rsa', [way, spec, optionsOf(key)], asked).bytes[0];
};

function diffieHellman({ privateKey, publicKey }, callback) {
  const agree = () => {
    const [own, other] = [keyInput(privateKey), keyInput(publicKey)];
    const pieces = [...own.pieces, ...other.pieces];
    return ask('diffie_hellman', [own.spec, other.spec], pieces).bytes[0];
  };
  return callback === undefined ? agree() : later(callback, () => [agree()]);
}

const COMMON_CURVES = new Set(['prime256v1', 'secp256k1', 'secp384r1', 'secp521r1']);

class ECDH {
  #curve;
  #number;
  #point;

  constructor(curve) {
    if (typeof curve !== 'string') {
      fail('ERR_INVALID_ARG_TYPE', 'The "curve" argument must be of type string.');
    }
    // Whether there is such a curve is to be known now.
    if (!COMMON_CURVES.has(curve)) ask('ecdh_generate', [curve]);
    this.#curve = curve;
  }

  static convertKey(key, curve, inputEncoding, outputEncoding, form) {
    const values = [curve, form ?? 'uncompressed'];
    const [point] = ask('ecdh_convert', values, [piece(key, inputEncoding, 'key')]).bytes;
    return output(point, outputEncoding);
  }

  generateKeys(encoding, form) {
    [this.#number, this.#point] = ask('ecdh_generate', [this.#curve]).bytes;
    return this.getPublicKey(encoding, form);
  }

  computeSecret(other, inputEncoding, outputEncoding) {
    const pieces = [{ text: toText(this.#own()), encoding: 'latin1' }];
    pieces.push(piece(other, inputEncoding, 'otherPublicKey'));
    return output(ask('ecdh_derive', [this.#curve], pieces).bytes[0], outputEncoding);
  }

  #own() {
    if (this.#number === undefined) {
      fail('ERR_CRYPTO_ECDH_INVALID_KEY', 'Failed to get ECDH private key', 'Error');
    }
    return this.#number;
  }

  getPrivateKey(encoding) {
    return output(this.#own(), encoding);
  }

  getPublicKey(encoding, form = 'uncompressed') {
    if (this.#point === undefined) {
      fail('ERR_CRYPTO_OPERATION_FAILED', 'Failed to get ECDH public key', 'Error');
    }
    if (form === 'uncompressed') return output(this.#point, encoding);
    return ECDH.convertKey(this.#point, this.#curve, undefined, encoding, form);
  }

  setPrivateKey(key, encoding) {
    const number = typeof key === 'string' ? Buffer.from(key, encoding) : Buffer.from(key);
    [this.#point] = ask('ecdh_derive', [this.#curve], [piece(number), undefined]).bytes;
    this.#number = number;
  }
}

Object.assign(exports, {
  ...{ Sign, Verify, sign, verify, signPiece, verifyPiece, diffieHellman, ECDH },
  createSign: (digest) => new Sign(digest),
  createVerify: (digest) => new Verify(digest),
  createECDH: (curve) => new ECDH(curve),
  publicEncrypt: rsa('publicEncrypt'),
  privateDecrypt: rsa('privateDecrypt'),
  privateEncrypt: rsa('privateEncrypt'),
  publicDecrypt: rsa('publicDecrypt'),
});
