/** `FormData` (WHATWG XHR) and its multipart encoding (RFC 7578, names as the HTML standard escapes). */
const utf8 = require('utf8');
const { Blob, File, bytesOfBlob, joinBytes } = require('blob');

function entryOf(name, value, filename) {
  if (!(value instanceof Blob)) return [`${name}`, `${value}`];
  const fallback = value instanceof File ? value.name : 'blob';
  const named = filename === undefined ? fallback : `${filename}`;
  if (value instanceof File && named === value.name) return [`${name}`, value];
  return [`${name}`, new File([value], named, { type: value.type })];
}

class FormData {
  #entries = [];

  append(name, value, filename) {
    this.#entries.push(entryOf(name, value, filename));
  }

  set(name, value, filename) {
    const first = this.#entries.findIndex(([one]) => one === `${name}`);
    if (first === -1) return this.append(name, value, filename);
    this.#entries[first] = entryOf(name, value, filename);
    this.#entries = this.#entries.filter(([one], at) => one !== `${name}` || at === first);
  }

  delete(name) {
    this.#entries = this.#entries.filter(([one]) => one !== `${name}`);
  }

  get(name) {
    return this.#entries.find(([one]) => one === `${name}`)?.[1] ?? null;
  }

  getAll(name) {
    return this.#entries.filter(([one]) => one === `${name}`).map(([, value]) => value);
  }

  has(name) {
    return this.#entries.some(([one]) => one === `${name}`);
  }

  *entries() {
    for (const [name, value] of this.#entries) yield [name, value];
  }

  *keys() {
    for (const [name] of this.#entries) yield name;
  }

  *values() {
    for (const [, value] of this.#entries) yield value;
  }

  forEach(callback, receiver) {
    for (const [name, value] of this.#entries) callback.call(receiver, value, name, this);
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  get [Symbol.toStringTag]() {
    return 'FormData';
  }
}

/** A name inside quotes; a line break in it would begin a header of its own. */
function escapeName(name) {
  return name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}

/** Parts hold what others typed; they can only guess what 100 random bits are. */
function newBoundary() {
  const digits = () => Math.random().toString(36).slice(2, 12);
  return `----formdata-${digits()}${digits()}`;
}

/** `{bytes, type}` of the form as multipart/form-data. */
function encodeMultipart(form) {
  const boundary = newBoundary();
  const parts = [];
  const write = (text) => parts.push(utf8.encode(text));
  for (const [name, value] of form) {
    write(`--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(name)}"`);
    if (typeof value === 'string') write(`\r\n\r\n${value.replace(/\r\n|\r|\n/g, '\r\n')}\r\n`);
    else {
      const type = value.type || 'application/octet-stream';
      write(`; filename="${escapeName(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`);
      parts.push(bytesOfBlob(value));
      write('\r\n');
    }
  }
  write(`--${boundary}--\r\n`);
  return { bytes: joinBytes(parts), type: `multipart/form-data; boundary=${boundary}` };
}

exports.FormData = FormData;
exports.encodeMultipart = encodeMultipart;
