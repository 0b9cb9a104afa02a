/** What `subtle` does with keys: signatures, ciphers, derivation. Bytes are pieces of questions. */
const { Buffer, ask, fail, piece, viewOf } = require('node-crypto-bridge');
const { keyInput, secretPiece } = require('crypto-keys');
const { signPiece, verifyPiece } = require('node-crypto-sign');
const { bufferPiece, digestName, refuse } = require('web-crypto-algorithms');
const { keyObjectOf, lengthOf } = require('web-crypto-keys');

const PKCS1 = 1;
const PSS = 6;
const OAEP = 4;
const BLOCK = 16;
const WRAP_VECTOR = Buffer.from('a6a6a6a6a6a6a6a6', 'hex');

/** Digest and key of a signature. */
function signature({ hash, saltLength }, key) {
  const { name, hash: keyHash } = key.algorithm;
  const keyObject = keyObjectOf(key);
  if (name === 'ECDSA') {
    return [digestName(hash), { key: keyObject, dsaEncoding: 'ieee-p1363' }];
  }
  if (name === 'RSA-PSS') {
    return [digestName(keyHash), { key: keyObject, padding: PSS, saltLength: Number(saltLength) }];
  }
  if (name === 'RSASSA-PKCS1-v1_5')
    return [digestName(keyHash), { key: keyObject, padding: PKCS1 }];
  return [null, keyObject];
}

function mac(key, data) {
  const values = [digestName(key.algorithm.hash), null];
  return ask('hmac', values, [secretPiece(key), data]).bytes[0];
}

function sign(algorithm, key, data) {
  if (algorithm.name === 'HMAC') return mac(key, data);
  const [digest, given] = signature(algorithm, key);
  return signPiece(digest, data, given);
}

function verify(algorithm, key, signed, data) {
  if (algorithm.name === 'HMAC') {
    const [expected, given] = [mac(key, data), viewOf(signed)];
    if (expected.length !== given.length) return false;
    return require('node-crypto-hash').timingSafeEqual(expected, given);
  }
  const [digest, given] = signature(algorithm, key);
  return verifyPiece(digest, data, given, bufferPiece(signed, 'signature'));
}

function aes(mode, encrypts, key, { iv, additional, tag, options = {} }, data) {
  const name = `aes-${key.algorithm.length}-${mode}`;
  const pieces = [secretPiece(key), iv, additional, tag, data];
  return ask('cipher', [name, encrypts, true, 0, options, true], pieces).bytes;
}

function vectorOf(algorithm, bytes) {
  const iv = bufferPiece(algorithm.iv, 'algorithm.iv');
  if (bytes !== undefined && iv.text.length !== bytes) {
    refuse('OperationError', `algorithm.iv must contain exactly ${bytes} bytes`);
  }
  return iv;
}

function gcm(encrypts, algorithm, key, data) {
  const bits = algorithm.tagLength ?? 128;
  if (![32, 64, 96, 104, 112, 120, 128].includes(bits)) {
    refuse('OperationError', 'Invalid AES-GCM tag length');
  }
  const iv = vectorOf(algorithm);
  const additional =
    algorithm.additionalData === undefined
      ? undefined
      : bufferPiece(algorithm.additionalData, 'algorithm.additionalData');
  const options = { authTagLength: bits / 8 };
  if (encrypts) return Buffer.concat(aes('gcm', true, key, { iv, additional, options }, data));
  const cut = data.text.length - bits / 8;
  if (cut < 0) refuse('OperationError', 'The provided data is too small.');
  const tag = { text: data.text.slice(cut), encoding: 'latin1' };
  const sealed = { text: data.text.slice(0, cut), encoding: 'latin1' };
  return aes('gcm', false, key, { iv, additional, tag, options }, sealed)[0];
}

/** The counter is the last `length` bits of its block and wraps within them. */
function ctr(encrypts, { counter, length }, key, data) {
  const start = Buffer.from(
    viewOf(counter) ?? fail('ERR_INVALID_ARG_TYPE', 'algorithm.counter must be a BufferSource.'),
  );
  if (start.length !== BLOCK || !(length >= 1 && length <= 128)) {
    refuse('OperationError', 'Invalid counter');
  }
  const run = (from, text) =>
    aes('ctr', encrypts, key, { iv: piece(from) }, { text, encoding: 'latin1' })[0];
  const span = 1n << BigInt(length);
  const whole = BigInt(`0x${start.toString('hex')}`);
  const blocks = BigInt(Math.ceil(data.text.length / BLOCK));
  if (blocks > span) refuse('OperationError', 'The counter would repeat.');
  const left = span - (whole % span);
  if (blocks <= left) return run(start, data.text);
  const cut = Number(left) * BLOCK;
  const again = Buffer.from((whole - (whole % span)).toString(16).padStart(2 * BLOCK, '0'), 'hex');
  return Buffer.concat([run(start, data.text.slice(0, cut)), run(again, data.text.slice(cut))]);
}

function oaep(encrypts, { label }, key, data) {
  const { spec, pieces } = keyInput(keyObjectOf(key));
  const options = { padding: OAEP, oaepHash: digestName(key.algorithm.hash) };
  const way = encrypts ? 'publicEncrypt' : 'privateDecrypt';
  const known = label === undefined ? undefined : bufferPiece(label, 'algorithm.label');
  return ask('encrypt_rsa', [way, spec, options], [...pieces, known, data]).bytes[0];
}

/** Encrypts or decrypts; `AES-KW` for wrapping only. */
function crypt(encrypts, algorithm, key, data) {
  if (algorithm.name === 'RSA-OAEP') return oaep(encrypts, algorithm, key, data);
  if (algorithm.name === 'AES-GCM') return gcm(encrypts, algorithm, key, data);
  if (algorithm.name === 'AES-CTR') return ctr(encrypts, algorithm, key, data);
  if (algorithm.name === 'AES-CBC') {
    return aes('cbc', encrypts, key, { iv: vectorOf(algorithm, BLOCK) }, data)[0];
  }
  const name = `aes${key.algorithm.length}-wrap`;
  const pieces = [secretPiece(key), piece(WRAP_VECTOR), undefined, undefined, data];
  return ask('cipher', [name, encrypts, true, 0, {}, true], pieces).bytes[0];
}

function byteLength(length) {
  if (Number.isInteger(length) && length >= 0 && length % 8 === 0) return length / 8;
  return refuse('OperationError', 'length must be a multiple of 8');
}

function agree({ public: other }, key, length) {
  const [own, theirs] = [keyInput(keyObjectOf(key)), keyInput(publicOf(other, key))];
  const pieces = [...own.pieces, ...theirs.pieces];
  const [secret] = ask('diffie_hellman', [own.spec, theirs.spec], pieces).bytes;
  if (length === null || length === undefined) return secret;
  const bytes = Math.ceil(length / 8);
  if (bytes > secret.length) refuse('OperationError', 'derived bit length is too small');
  const cut = Buffer.from(secret.subarray(0, bytes));
  // Bits beyond the length are zero.
  if (length % 8 !== 0) cut[bytes - 1] &= 0xff << (8 - (length % 8));
  return cut;
}

function publicOf(other, key) {
  const keyObject = keyObjectOf(other);
  const { name, namedCurve } = other?.algorithm ?? {};
  const fits = name === key.algorithm.name && namedCurve === key.algorithm.namedCurve;
  if (keyObject?.type !== 'public' || !fits) {
    refuse('InvalidAccessError', 'algorithm.public must be a public key of the same kind');
  }
  return keyObject;
}

function deriveBits(algorithm, key, length) {
  const { name } = algorithm;
  if (name !== 'PBKDF2' && name !== 'HKDF') return agree(algorithm, key, length);
  const digest = digestName(algorithm.hash);
  const salt = bufferPiece(algorithm.salt, 'algorithm.salt');
  const bytes = byteLength(length);
  if (name === 'PBKDF2') {
    return ask('pbkdf2', [algorithm.iterations, bytes, digest], [secretPiece(key), salt]).bytes[0];
  }
  const info = bufferPiece(algorithm.info, 'algorithm.info');
  return ask('hkdf', [digest, bytes], [secretPiece(key), salt, info]).bytes[0];
}

Object.assign(exports, { crypt, deriveBits, lengthOf, sign, verify });
