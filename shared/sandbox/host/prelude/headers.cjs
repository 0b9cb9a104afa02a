/** `Headers` (WHATWG Fetch). Keeps the spelling of names for the wire; compares without it. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const EDGES = /^[\t\n\r ]+|[\t\n\r ]+$/g;

function checkedName(name) {
  const text = `${name}`;
  if (!TOKEN.test(text)) throw new TypeError('The name of a header is not valid.');
  return text;
}

/** Line breaks inside would end the header; characters above U+00FF are no bytes. */
function checkedValue(value) {
  const text = `${value}`.replace(EDGES, '');
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === 0 || unit === 0x0a || unit === 0x0d || unit > 0xff) {
      throw new TypeError('The value of a header has characters that are not allowed.');
    }
  }
  return text;
}

class Headers {
  /** `{key, name, value}`: key in lower case. */
  #list = [];

  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init !== 'object') throw new TypeError('Headers are made of an object or pairs.');
    if (init instanceof Headers) this.#list = [...init.#list];
    else if (typeof init[Symbol.iterator] === 'function') {
      for (const pair of init) {
        const [name, value, ...rest] = [...pair];
        if (value === undefined || rest.length > 0) throw new TypeError('A header is a pair.');
        this.append(name, value);
      }
    } else for (const name of Object.keys(init)) this.append(name, init[name]);
  }

  append(name, value) {
    const checked = checkedName(name);
    this.#list.push({ key: checked.toLowerCase(), name: checked, value: checkedValue(value) });
  }

  set(name, value) {
    const checked = checkedName(name);
    const key = checked.toLowerCase();
    const entry = { key, name: checked, value: checkedValue(value) };
    const first = this.#list.findIndex((one) => one.key === key);
    if (first === -1) this.#list.push(entry);
    else {
      this.#list[first] = entry;
      this.#list = this.#list.filter((one, at) => one.key !== key || at === first);
    }
  }

  delete(name) {
    const key = checkedName(name).toLowerCase();
    this.#list = this.#list.filter((one) => one.key !== key);
  }

  has(name) {
    const key = checkedName(name).toLowerCase();
    return this.#list.some((one) => one.key === key);
  }

  get(name) {
    const values = this.#valuesOf(checkedName(name).toLowerCase());
    return values.length === 0 ? null : values.join(', ');
  }

  getSetCookie() {
    return this.#valuesOf('set-cookie');
  }

  #valuesOf(key) {
    return this.#list.filter((one) => one.key === key).map(({ value }) => value);
  }

  *entries() {
    const keys = [...new Set(this.#list.map(({ key }) => key))].sort();
    for (const key of keys) {
      if (key !== 'set-cookie') yield [key, this.#valuesOf(key).join(', ')];
      else for (const value of this.#valuesOf(key)) yield [key, value];
    }
  }

  *keys() {
    for (const [key] of this.entries()) yield key;
  }

  *values() {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(callback, receiver) {
    for (const [key, value] of this.entries()) callback.call(receiver, value, key, this);
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  get [Symbol.toStringTag]() {
    return 'Headers';
  }

  static {
    exports.pairsOf = (headers) => headers.#list.map(({ name, value }) => [name, value]);
  }
}

exports.Headers = Headers;
exports.TOKEN = TOKEN;
