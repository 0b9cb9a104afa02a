/** `URLSearchParams` and the form encoding (WHATWG URL, section 5). */
const utf8 = require('utf8');

function decodePart(text) {
  const plus = text.replaceAll('+', ' ');
  if (!plus.includes('%')) return plus;
  const bytes = utf8.encode(plus);
  const decoded = [];
  for (let at = 0; at < bytes.length; at += 1) {
    const hex = bytes[at] === 0x25 ? String.fromCharCode(bytes[at + 1], bytes[at + 2]) : '';
    if (/^[0-9a-fA-F]{2}$/.test(hex)) {
      decoded.push(Number.parseInt(hex, 16));
      at += 2;
    } else decoded.push(bytes[at]);
  }
  return utf8.decode(Uint8Array.from(decoded));
}

function encodePart(text) {
  let encoded = '';
  for (const byte of utf8.encode(text)) {
    const character = String.fromCharCode(byte);
    if (byte === 0x20) encoded += '+';
    else if (/[A-Za-z0-9*\-._]/.test(character)) encoded += character;
    else encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

function pairsOf(text) {
  const query = text.startsWith('?') ? text.slice(1) : text;
  return query
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.indexOf('=');
      if (equals === -1) return [decodePart(part), ''];
      return [decodePart(part.slice(0, equals)), decodePart(part.slice(equals + 1))];
    });
}

function initialPairs(init) {
  if (init === undefined || init === null) return [];
  if (typeof init !== 'object') return pairsOf(`${init}`);
  const entries = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
  return entries.map(([name, value]) => [`${name}`, `${value}`]);
}

class URLSearchParams {
  #pairs;
  #changed;

  constructor(init) {
    this.#pairs = initialPairs(init);
    this.#changed = () => undefined;
  }

  static attached(search, changed) {
    const params = new URLSearchParams(search);
    params.#changed = () => changed(params.toString());
    return params;
  }

  get size() {
    return this.#pairs.length;
  }

  append(name, value) {
    this.#pairs.push([`${name}`, `${value}`]);
    this.#changed();
  }

  delete(name, value) {
    const stays = ([key, item]) =>
      key !== `${name}` || (value !== undefined && item !== `${value}`);
    this.#pairs = this.#pairs.filter(stays);
    this.#changed();
  }

  get(name) {
    return this.#pairs.find(([key]) => key === `${name}`)?.[1] ?? null;
  }

  getAll(name) {
    return this.#pairs.filter(([key]) => key === `${name}`).map(([, value]) => value);
  }

  has(name, value) {
    return this.#pairs.some(
      ([key, item]) => key === `${name}` && (value === undefined || item === `${value}`),
    );
  }

  set(name, value) {
    const first = this.#pairs.findIndex(([key]) => key === `${name}`);
    if (first === -1) return this.append(name, value);
    this.#pairs[first] = [`${name}`, `${value}`];
    this.#pairs = this.#pairs.filter(([key], index) => key !== `${name}` || index === first);
    this.#changed();
  }

  sort() {
    this.#pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
    this.#changed();
  }

  forEach(callback, receiver) {
    for (const [name, value] of this.#pairs) callback.call(receiver, value, name, this);
  }

  *entries() {
    for (const [name, value] of this.#pairs) yield [name, value];
  }

  *keys() {
    for (const [name] of this.#pairs) yield name;
  }

  *values() {
    for (const [, value] of this.#pairs) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  get [Symbol.toStringTag]() {
    return 'URLSearchParams';
  }

  toString() {
    return this.#pairs.map(([name, value]) => `${encodePart(name)}=${encodePart(value)}`).join('&');
  }
}

exports.URLSearchParams = URLSearchParams;
exports.attach = URLSearchParams.attached;
delete URLSearchParams.attached;
