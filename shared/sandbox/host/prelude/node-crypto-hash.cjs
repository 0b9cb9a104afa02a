/** Digests, message authentication, key derivation and random values of Node's `crypto`. */
const { Buffer, Pieces, ask, fail, later, output, piece, viewOf } = require('node-crypto-bridge');

/** Digests that need no question whether there is such a one. */
const COMMON = new Set(['sha1', 'sha256', 'sha384', 'sha512', 'md5', 'sha224']);
/** Forms that the host writes itself. */
const TEXTS = new Set(['hex', 'base64', 'base64url', 'latin1']);

function digestName(name) {
  if (typeof name !== 'string') {
    fail('ERR_INVALID_ARG_TYPE', 'The "algorithm" argument must be of type string.');
  }
  return name;
}

function finished() {
  fail('ERR_CRYPTO_HASH_FINALIZED', 'Digest already called', 'Error');
}

/** `{ value }` when the host wrote the text, bytes otherwise. */
function answerOf({ value, bytes }, encoding) {
  return value ?? output(bytes[0], encoding);
}

const hostForm = (encoding) => (TEXTS.has(encoding) ? encoding : null);

class Hash {
  #name;
  #length;
  #pieces = new Pieces();
  #done = false;

  constructor(name, options, pieces) {
    this.#name = digestName(name);
    this.#length = options?.outputLength ?? null;
    if (pieces !== undefined) this.#pieces = pieces;
    else if (!COMMON.has(name) || this.#length !== null) ask('hash', [name, this.#length, null]);
  }

  update(data, encoding) {
    if (this.#done) finished();
    this.#pieces.add(piece(data, encoding));
    return this;
  }

  digest(encoding) {
    if (this.#done) finished();
    this.#done = true;
    const values = [this.#name, this.#length, hostForm(encoding)];
    return answerOf(ask('hash', values, this.#pieces.all), encoding);
  }

  copy(options) {
    if (this.#done) finished();
    const outputLength = options?.outputLength ?? this.#length;
    return new Hash(this.#name, { outputLength }, this.#pieces.copy());
  }
}

class Hmac {
  #name;
  #key;
  #pieces = new Pieces();
  #done = false;

  constructor(name, key, options) {
    this.#name = digestName(name);
    this.#key = require('crypto-keys').secretPiece(key, options?.encoding);
    if (!COMMON.has(name)) ask('hmac', [name, null], [this.#key]);
  }

  update(data, encoding) {
    if (this.#done) finished();
    this.#pieces.add(piece(data, encoding));
    return this;
  }

  /** A second call gives nothing, as in Node. */
  digest(encoding) {
    if (this.#done) return output(Buffer.alloc(0), encoding);
    this.#done = true;
    const pieces = [this.#key, ...this.#pieces.all];
    return answerOf(ask('hmac', [this.#name, hostForm(encoding)], pieces), encoding);
  }
}

function hash(name, data, options = 'hex') {
  const { outputEncoding = 'hex', outputLength } =
    typeof options === 'string' ? { outputEncoding: options } : options;
  const made = new Hash(digestName(name), { outputLength }, new Pieces());
  return made.update(data).digest(outputEncoding === 'buffer' ? undefined : outputEncoding);
}

function pbkdf2Sync(password, salt, iterations, length, digest) {
  const pieces = [piece(password, 'utf8', 'password'), piece(salt, 'utf8', 'salt')];
  return ask('pbkdf2', [iterations, length, digestName(digest)], pieces).bytes[0];
}

function scryptSync(password, salt, length, options = {}) {
  const N = options.N ?? options.cost ?? 16384;
  const r = options.r ?? options.blockSize ?? 8;
  const p = options.p ?? options.parallelization ?? 1;
  const maxmem = options.maxmem ?? 32 * 1024 * 1024;
  if (128 * N * r > maxmem) {
    fail(
      'ERR_CRYPTO_INVALID_SCRYPT_PARAMS',
      'Invalid scrypt params: memory limit exceeded',
      'RangeError',
    );
  }
  const pieces = [piece(password, 'utf8', 'password'), piece(salt, 'utf8', 'salt')];
  return ask('scrypt', [length, N, r, p], pieces).bytes[0];
}

function hkdfSync(digest, key, salt, info, length) {
  const secret = require('crypto-keys').secretPiece(key);
  const pieces = [secret, piece(salt, 'utf8', 'salt'), piece(info, 'utf8', 'info')];
  const { buffer } = ask('hkdf', [digestName(digest), length], pieces).bytes[0];
  return buffer;
}

function randomBytes(size, callback) {
  const make = () => ask('random', [size]).bytes[0];
  return callback === undefined ? make() : later(callback, () => [make()]);
}

function randomFillSync(target, offset = 0, size = undefined) {
  const view = viewOf(target);
  if (view === undefined) {
    fail(
      'ERR_INVALID_ARG_TYPE',
      'The "buf" argument must be an instance of ArrayBuffer or ArrayBufferView.',
    );
  }
  const width = target.BYTES_PER_ELEMENT ?? 1;
  const from = offset * width;
  const length = size === undefined ? view.length - from : size * width;
  if (!(from >= 0 && length >= 0 && from + length <= view.length)) {
    fail('ERR_OUT_OF_RANGE', 'The range is outside of the buffer.', 'RangeError');
  }
  view.set(randomBytes(length), from);
  return target;
}

function randomFill(target, ...rest) {
  const callback = rest.pop();
  later(callback, () => [randomFillSync(target, ...rest)]);
}

function randomInt(first, second, third) {
  const oneBound = second === undefined || typeof second === 'function';
  const [min, max, callback] = oneBound ? [0, first, second] : [first, second, third];
  if (!Number.isSafeInteger(min) || !Number.isSafeInteger(max)) {
    fail('ERR_INVALID_ARG_TYPE', 'The bounds must be safe integers.');
  }
  const make = () => ask('random_integer', [min, max]).value;
  return callback === undefined ? make() : later(callback, () => [make()]);
}

const randomUUID = () => ask('random_uuid', []).value;

/** In time that does not depend on where the two differ. */
function timingSafeEqual(left, right) {
  const [one, other] = [viewOf(left), viewOf(right)];
  if (one === undefined || other === undefined) {
    fail(
      'ERR_INVALID_ARG_TYPE',
      'The arguments must be instances of ArrayBuffer, Buffer, TypedArray, or DataView.',
    );
  }
  if (one.length !== other.length) {
    const message = 'Input buffers must have the same byte length';
    fail('ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH', message, 'RangeError');
  }
  let difference = 0;
  for (let at = 0; at < one.length; at += 1) difference |= one[at] ^ other[at];
  return difference === 0;
}

/** `name(..., callback)` of a function that answers at once. */
const calledBack =
  (sync) =>
  (...args) => {
    const callback = args.pop();
    later(callback, () => [sync(...args)]);
  };

Object.assign(exports, {
  ...{ Hash, Hmac, hash, pbkdf2Sync, scryptSync, hkdfSync },
  ...{ randomBytes, pseudoRandomBytes: randomBytes, randomFillSync, randomFill, randomInt },
  ...{ randomUUID, timingSafeEqual },
  createHash: (name, options) => new Hash(name, options),
  createHmac: (name, key, options) => new Hmac(name, key, options),
  pbkdf2: calledBack(pbkdf2Sync),
  scrypt: calledBack(scryptSync),
  hkdf: calledBack(hkdfSync),
  getHashes: () => ask('names', ['hashes']).value,
  getCurves: () => ask('names', ['curves']).value,
});
