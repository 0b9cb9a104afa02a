/** `Blob` and `File` (WHATWG File API): bytes in memory with a type. */
const utf8 = require('utf8');

let bytesOfBlob;

/** The bytes of one part: a string, a buffer or view, a Blob; anything else by its text. */
function bytesOfPart(part) {
  if (part instanceof Blob) return bytesOfBlob(part);
  if (part instanceof ArrayBuffer) return new Uint8Array(part);
  if (ArrayBuffer.isView(part)) {
    return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  }
  return utf8.encode(`${part}`);
}

/** One array of all the bytes; a copy, so that later changes of the parts do not matter. */
function joinBytes(list) {
  const joined = new Uint8Array(list.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const bytes of list) {
    joined.set(bytes, at);
    at += bytes.length;
  }
  return joined;
}

class Blob {
  #bytes;
  #type;

  constructor(parts = [], { type = '' } = {}) {
    if (typeof parts !== 'object' || parts === null) {
      throw new TypeError('A Blob is made of a list of parts.');
    }
    this.#bytes = joinBytes(Array.from(parts, bytesOfPart));
    this.#type = /^[\x20-\x7e]*$/.test(`${type}`) ? `${type}`.toLowerCase() : '';
  }

  get size() {
    return this.#bytes.length;
  }

  get type() {
    return this.#type;
  }

  slice(start = 0, end = this.size, type = '') {
    return new Blob([this.#bytes.slice(start, end)], { type });
  }

  async text() {
    return utf8.decode(this.#bytes);
  }

  async arrayBuffer() {
    return this.#bytes.slice().buffer;
  }

  async bytes() {
    return this.#bytes.slice();
  }

  stream() {
    return require('web-stream').streamOf(() => this.#bytes.slice());
  }

  get [Symbol.toStringTag]() {
    return 'Blob';
  }

  static {
    bytesOfBlob = (blob) => blob.#bytes;
  }
}

class File extends Blob {
  #name;
  #lastModified;

  constructor(parts, name, options = {}) {
    super(parts, options);
    this.#name = `${name}`;
    this.#lastModified = options.lastModified ?? Date.now();
  }

  get name() {
    return this.#name;
  }

  get lastModified() {
    return this.#lastModified;
  }
}

exports.Blob = Blob;
exports.File = File;
exports.bytesOfBlob = bytesOfBlob;
exports.joinBytes = joinBytes;
