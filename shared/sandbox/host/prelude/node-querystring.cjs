/** Node's `querystring`. `parse` also takes an object: form bodies arrive already parsed. */
const DEFAULT_KEYS_MAX = 1000;

function unescapeText(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return require('node-buffer').Buffer.from(globalThis.unescape(text), 'latin1').toString();
  }
}

const escapeText = (value) => encodeURIComponent(value);

function parse(text, separator = '&', equals = '=', { maxKeys = DEFAULT_KEYS_MAX } = {}) {
  if (typeof text === 'object' && text !== null) return text;
  const parsed = Object.create(null);
  if (typeof text !== 'string' || text === '') return parsed;
  const parts = text.split(separator);
  for (const part of maxKeys > 0 ? parts.slice(0, maxKeys) : parts) {
    if (part === '') continue;
    const at = part.indexOf(equals);
    const decode = (piece) => unescapeText(piece.replaceAll('+', ' '));
    const name = decode(at === -1 ? part : part.slice(0, at));
    const value = at === -1 ? '' : decode(part.slice(at + equals.length));
    if (parsed[name] === undefined) parsed[name] = value;
    else if (Array.isArray(parsed[name])) parsed[name].push(value);
    else parsed[name] = [parsed[name], value];
  }
  return parsed;
}

function print(value) {
  if (typeof value === 'string') return escapeText(value);
  if (typeof value === 'number') return Number.isFinite(value) ? escapeText(value) : '';
  return typeof value === 'boolean' || typeof value === 'bigint' ? escapeText(value) : '';
}

function stringify(object, separator = '&', equals = '=') {
  if (typeof object !== 'object' || object === null) return '';
  return Object.entries(object)
    .flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map(
        (item) => escapeText(name) + equals + print(item),
      ),
    )
    .join(separator);
}

exports.parse = parse;
exports.decode = parse;
exports.stringify = stringify;
exports.encode = stringify;
exports.escape = escapeText;
exports.unescape = unescapeText;
