/**
 * Requests of `req.bt.proxy` and their answers as the gateway has them: bodies as text, or as base64 when
 * they are bytes; nothing of them is renamed.
 */
const { fromBase64, toBase64 } = require('base64');

const { parse, stringify } = JSON;
const { defineProperty, entries, hasOwn } = Object;
const { isArray } = Array;
const { isView } = ArrayBuffer;

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** `[content, type]`; the type counts where the code has named none. */
function contentOf(body) {
  if (body === undefined || body === null) return [{}, undefined];
  if (typeof body === 'string') return [{ body }, FORM_TYPE];
  if (body instanceof URLSearchParams) return [{ body: `${body}` }, FORM_TYPE];
  const bytes = bytesOf(body);
  if (bytes !== undefined) return [{ base64: toBase64(bytes, false) }, undefined];
  return [{ body: stringify(body) }, JSON_TYPE];
}

function bytesOf(body) {
  if (isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  return body instanceof ArrayBuffer ? new Uint8Array(body) : undefined;
}

/** A list repeats its name; what has no value is left out. */
function pairsOf(headers) {
  return entries(headers ?? {}).flatMap(([name, value]) => {
    if (value === undefined || value === null) return [];
    return [value].flat().flatMap((one) => [name, `${one}`]);
  });
}

const names = (pairs, wanted) =>
  pairs.some((name, index) => index % 2 === 0 && name.toLowerCase() === wanted);

/** A path without its slash gets one; its own query stays before the other. */
function targetOf(path, query) {
  const text = path === undefined || path === null ? '' : `${path}`;
  const mark = text.indexOf('?');
  const own = mark < 0 ? '' : text.slice(mark + 1);
  const plain = mark < 0 ? text : text.slice(0, mark);
  const slash = plain === '' || plain.startsWith('/') ? '' : '/';
  return { path: slash + plain, query: [own, query].filter((part) => part !== '').join('&') };
}

const encode = (value) => encodeURIComponent(`${value}`.toWellFormed());

/** Names as they are; lists as `name[]`, other objects as JSON. */
function queryText(query) {
  const parts = entries(query ?? {}).flatMap(([name, value]) => {
    if (value === undefined || value === null) return [];
    if (isArray(value)) return value.map((one) => `${encode(name)}[]=${encode(one)}`);
    const text = typeof value === 'object' ? stringify(value) : value;
    return [`${encode(name)}=${encode(text)}`];
  });
  return parts.join('&');
}

exports.requestOf = (method, { path, query, headers, body }) => {
  const pairs = pairsOf(headers);
  const isBodiless = method === 'GET' || method === 'DELETE';
  const [content, type] = isBodiless ? [{}] : contentOf(body);
  if (type !== undefined && !names(pairs, 'content-type')) pairs.push('Content-Type', type);
  if (!names(pairs, 'accept')) pairs.push('Accept', 'application/json, text/plain, */*');
  const target = targetOf(path, queryText(query));
  return { operation: 'proxy', method, ...target, headers: pairs, ...content };
};

/** What is JSON is parsed, whatever its type, as this client has always done; bytes are a Buffer. */
exports.dataOf = ({ body, base64 }) => {
  if (base64 !== undefined) return Buffer.from(fromBase64(base64));
  try {
    return parse(body);
  } catch {
    return body;
  }
};

/** By name in lower case; those of one name are joined, `set-cookie` is always a list. */
exports.headersOf = ({ headers: pairs }) => {
  const headers = {};
  const put = (name, value) =>
    defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    const name = pairs[index].toLowerCase();
    const value = pairs[index + 1];
    const known = hasOwn(headers, name) ? headers[name] : undefined;
    if (name === 'set-cookie') put(name, [...(known ?? []), value]);
    else put(name, known === undefined ? value : `${known}, ${value}`);
  }
  return headers;
};
