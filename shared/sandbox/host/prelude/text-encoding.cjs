/** `TextEncoder` and `TextDecoder` (WHATWG Encoding) for UTF-8, UTF-16LE and Latin-1. */
const { encode, decode } = require('utf8');

class TextEncoder {
  get encoding() {
    return 'utf-8';
  }

  encode(text = '') {
    return encode(String(text));
  }
}

const LABELS = {
  __proto__: null,
  'utf-8': 'utf-8',
  utf8: 'utf-8',
  'utf-16le': 'utf-16le',
  'utf-16': 'utf-16le',
  latin1: 'windows-1252',
  'iso-8859-1': 'windows-1252',
  ascii: 'windows-1252',
};

function bytesOf(input) {
  if (input === undefined) return new Uint8Array(0);
  if (ArrayBuffer.isView(input)) {
    return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  }
  return new Uint8Array(input);
}

class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBom;

  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    const encoding = LABELS[String(label).trim().toLowerCase()];
    if (encoding === undefined) throw new RangeError('The encoding is not supported.');
    this.#encoding = encoding;
    this.#fatal = Boolean(fatal);
    this.#ignoreBom = Boolean(ignoreBOM);
  }

  get encoding() {
    return this.#encoding;
  }

  decode(input) {
    const bytes = bytesOf(input);
    if (this.#encoding === 'windows-1252') return require('node-buffer').latin1(bytes);
    const text =
      this.#encoding === 'utf-8' ? decode(bytes, this.#fatal) : require('node-buffer').utf16(bytes);
    return !this.#ignoreBom && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }
}

exports.TextEncoder = TextEncoder;
exports.TextDecoder = TextDecoder;
