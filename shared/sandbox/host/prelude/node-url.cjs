/** `URL` (WHATWG): parsed by the host, text in and text out. `URLSearchParams` is here. */
const { URLSearchParams, attach } = require('url-search-params');

const PARTS = [
  ...['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port'],
  ...['pathname', 'search', 'hash'],
];

function ask(operation, value) {
  const text = native('url', operation, JSON.stringify(value));
  if (text === undefined) {
    const error = new TypeError('Invalid URL');
    error.code = 'ERR_INVALID_URL';
    throw error;
  }
  return JSON.parse(text);
}

class URL {
  #parts;
  #searchParams;

  constructor(href, base) {
    this.#parts = ask('parse', base === undefined ? [`${href}`] : [`${href}`, `${base}`]);
  }

  static canParse(href, base) {
    try {
      return new URL(href, base) instanceof URL;
    } catch {
      return false;
    }
  }

  get searchParams() {
    this.#searchParams ??= attach(this.search, (text) => {
      this.#parts = ask('set', [this.href, 'search', text]);
    });
    return this.#searchParams;
  }

  get [Symbol.toStringTag]() {
    return 'URL';
  }

  toString() {
    return this.href;
  }

  toJSON() {
    return this.href;
  }

  static {
    for (const part of PARTS) {
      const get = function () {
        return this.#parts[part];
      };
      const set = function (value) {
        if (part === 'href') this.#parts = ask('parse', [`${value}`]);
        else this.#parts = ask('set', [this.#parts.href, part, `${value}`]);
        if (part === 'href' || part === 'search') this.#searchParams = undefined;
      };
      const accessor = part === 'origin' ? { get } : { get, set };
      Object.defineProperty(URL.prototype, part, {
        ...accessor,
        enumerable: true,
        configurable: true,
      });
    }
  }
}

exports.URL = URL;
exports.URLSearchParams = URLSearchParams;
/** Node's older interface, also carried out by the host. */
exports.parse = (text, parseQuery = false) => {
  const parsed = ask('legacy_parse', [`${text}`]);
  if (parseQuery) parsed.query = require('node-querystring').parse(parsed.query ?? '');
  return parsed;
};
exports.resolve = (from, to) => ask('legacy_resolve', [`${from}`, `${to}`]);
exports.format = (value) => {
  if (typeof value === 'string' || value instanceof URL) return `${value}`;
  const query = value.query;
  const search =
    typeof query === 'object' && query !== null
      ? require('node-querystring').stringify(query)
      : undefined;
  return ask('legacy_format', [
    search === undefined
      ? value
      : { ...value, query: undefined, search: value.search ?? `?${search}` },
  ]);
};
