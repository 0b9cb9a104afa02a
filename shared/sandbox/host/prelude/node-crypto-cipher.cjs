/**
 * `createCipheriv` and `createDecipheriv`. The host keeps no cipher, so each call carries all input so far
 * and takes what is new of the output; beyond a bound of repeated input, `final` gives the rest at once.
 */
const {
  Buffer,
  Pieces,
  ask,
  fail,
  output,
  piece,
  toBuffer,
  toText,
} = require('node-crypto-bridge');

/** Characters of input that updates may send again in all; concatenated output stays the same. */
const REPEATED_MAX = 32 * 1024 * 1024;

/** Bytes that wait until the next ones complete a character of the encoding. */
class TextOutput {
  #held = Buffer.alloc(0);

  write(bytes, encoding, last) {
    if (encoding === undefined || encoding === null || encoding === 'buffer') return bytes;
    const all = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const whole = last ? all.length : all.length - incomplete(all, encoding);
    this.#held = all.subarray(whole);
    return output(all.subarray(0, whole), encoding);
  }
}

function incomplete(bytes, encoding) {
  const name = `${encoding}`.toLowerCase();
  if (name.startsWith('base64')) return bytes.length % 3;
  if (/^(?:utf-?16le|ucs-?2)$/.test(name)) return bytes.length % 2;
  return /^utf-?8$/.test(name) ? incompleteUtf8(bytes) : 0;
}

/** How many bytes at the end begin a character that is not all there. */
function incompleteUtf8(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back];
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? back : 0;
    }
  }
  return 0;
}

function wrongState(what) {
  fail('ERR_CRYPTO_INVALID_STATE', `Invalid state for operation ${what}`, 'Error');
}

const COMMON = /^aes-(128|192|256)-(cbc|ctr|gcm)$/;

/** Whether the host need not be asked if such a cipher can be. */
function isPlainlyRight(name, key, iv, options) {
  const [, bits, mode] = COMMON.exec(name) ?? [];
  if (mode === undefined || options !== undefined || iv === undefined) return false;
  if (key.encoding !== 'latin1' || iv.encoding !== 'latin1') return false;
  return key.text.length * 8 === Number(bits) && iv.text.length === (mode === 'gcm' ? 12 : 16);
}

class Base {
  #name;
  #encrypts;
  #fixed;
  #options = {};
  #additional;
  #tag;
  #input = new Pieces();
  #updates = 0;
  #inputLength = 0;
  #repeated = 0;
  #had = 0;
  #done = false;
  #text = new TextOutput();

  constructor(encrypts, name, key, iv, options) {
    if (typeof name !== 'string') {
      fail('ERR_INVALID_ARG_TYPE', 'The "cipher" argument must be of type string.');
    }
    this.#name = name;
    this.#encrypts = encrypts;
    const vector = iv === null ? undefined : piece(iv, 'utf8', 'iv');
    this.#fixed = [require('crypto-keys').secretPiece(key), vector];
    if (options?.authTagLength !== undefined) this.#options.authTagLength = options.authTagLength;
    if (!isPlainlyRight(name, ...this.#fixed, options)) this.#ask(false);
  }

  #ask(last) {
    const state = [this.#encrypts, last, this.#had, this.#options, this.#updates > 0];
    const pieces = [...this.#fixed, this.#additional, this.#tag, ...this.#input.all];
    const { bytes } = ask('cipher', [this.#name, ...state], pieces);
    this.#had += bytes[0].length;
    return bytes;
  }

  update(data, inputEncoding, outputEncoding) {
    if (this.#done) wrongState('update');
    const part = piece(data, inputEncoding);
    this.#input.add(part.encoding === 'latin1' ? part : latin1Of(data, part.encoding));
    this.#updates += 1;
    this.#repeated += this.#inputLength;
    this.#inputLength += part.text.length;
    if (this.#repeated > REPEATED_MAX) return this.#text.write(Buffer.alloc(0), outputEncoding);
    return this.#text.write(this.#ask(false)[0], outputEncoding);
  }

  final(outputEncoding) {
    if (this.#done) wrongState('final');
    this.#done = true;
    const [rest, tag] = this.#ask(true);
    if (tag !== undefined) this.#tag = piece(tag);
    return this.#text.write(rest, outputEncoding, true);
  }

  setAutoPadding(autoPadding = true) {
    if (this.#done) wrongState('setAutoPadding');
    this.#options.autoPadding = Boolean(autoPadding);
    return this;
  }

  setAAD(data, options) {
    if (this.#done || this.#updates > 0) wrongState('setAAD');
    const { encoding, plaintextLength } = options ?? {};
    const part = latin1Of(data, encoding);
    const before = this.#additional?.text ?? '';
    this.#additional = { text: before + part.text, encoding: 'latin1' };
    if (plaintextLength !== undefined) this.#options.plaintextLength = plaintextLength;
    return this;
  }

  getAuthTag() {
    if (!this.#encrypts || !this.#done || this.#tag === undefined) wrongState('getAuthTag');
    return toBuffer(this.#tag.text);
  }

  setAuthTag(tag, encoding) {
    if (this.#encrypts || this.#done || this.#tag !== undefined) wrongState('setAuthTag');
    this.#tag = latin1Of(tag, encoding);
    // The host says now what is wrong with its length, not at the end.
    if (this.#updates === 0) this.#ask(false);
    return this;
  }
}

/** So that pieces of all encodings join to one. */
function latin1Of(data, encoding) {
  const bytes = typeof data === 'string' ? Buffer.from(data, encoding ?? 'utf8') : undefined;
  return bytes === undefined ? piece(data) : { text: toText(bytes), encoding: 'latin1' };
}

class Cipheriv extends Base {
  constructor(...args) {
    super(true, ...args);
  }
}

class Decipheriv extends Base {
  constructor(...args) {
    super(false, ...args);
  }
}

// Not arrow functions: openpgp calls them with `new`, which Node's allow.
function createCipheriv(name, key, iv, options) {
  return new Cipheriv(name, key, iv, options);
}

function createDecipheriv(name, key, iv, options) {
  return new Decipheriv(name, key, iv, options);
}

function getCipherInfo(name, options) {
  if (typeof name !== 'string') return undefined;
  const { keyLength = null, ivLength = null } = options ?? {};
  return ask('cipher_info', [name, keyLength, ivLength]).value ?? undefined;
}

Object.assign(exports, {
  ...{ Cipheriv, Decipheriv, getCipherInfo, createCipheriv, createDecipheriv },
  getCiphers: () => ask('cipher_names', []).value,
});
