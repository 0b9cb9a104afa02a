/**
 * Member names between the API's snake_case and the client's camelCase, with the spellings that clients
 * of this API have always made: code in reactors reads and writes them.
 */
const { isArray } = Array;
const { entries } = Object;

/** A letter that has been lower or upper case all along, whatever the script. */
const LOWER = '[\\p{Changes_When_Uppercased}--\\p{Changes_When_Lowercased}]';
const UPPER = '[\\p{Changes_When_Lowercased}--\\p{Changes_When_Uppercased}]';
const WORD_BEGINS = new RegExp(`(${LOWER})([A-Z])`, 'gv');
const WORD_AFTER_CAPITALS = new RegExp(`(${UPPER})(${UPPER})([a-z])`, 'gv');

/** `created_at` → `createdAt`, `search_indexes.first` → `searchIndexesFirst`, `_extras` → `extras`. */
function camelName(name) {
  const text = name.trim();
  if (text.length < 2) return text.toLowerCase();
  return text
    .replace(WORD_BEGINS, '$1-$2')
    .replace(WORD_AFTER_CAPITALS, '$1-$2$3')
    .replace(/^[_.\- ]+/, '')
    .toLowerCase()
    .replace(/[_.\- ]+(\w|$)/g, (_separator, letter) => letter.toUpperCase())
    .replace(/\d+(\w|$)/g, (digits) => digits.toUpperCase());
}

/** What is no letter or digit becomes one space; the last of it nothing. */
function spaced(text) {
  return text.replace(/[\W_]+(.|$)/g, (_separator, next) => (next === '' ? '' : ` ${next}`));
}

/** Words apart and in lower case. What has a separator keeps its capitals inside words: `a_bC`. */
function wordsOf(name) {
  if (/\s/.test(name)) return name.toLowerCase();
  if (/[_\-.:]/.test(name)) return (spaced(name) || name).toLowerCase();
  if (!/[a-z][A-Z]|[A-Z][a-z]/.test(name)) return name.toLowerCase();
  const apart = (_all, before, capitals) => `${before} ${capitals.split('').join(' ')}`;
  return name.replace(/(.)([A-Z]+)/g, apart).toLowerCase();
}

/** Of a body's member: `expiresAt` → `expires_at`. */
function snakeName(name) {
  return spaced(wordsOf(name)).trim().replace(/\s/g, '_');
}

/** Of a query's parameter: as in a body, but capitals and separators may be mixed. */
function snakeParameter(name) {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replace(/[^A-Za-z0-9]+/g, ' ')
    .replace(/^ +| +$/g, '')
    .toLowerCase()
    .replaceAll(' ', '_');
}

/** What JSON prints in a way of its own, such as a Date, is a value and not an object with members. */
function hasMembers(value) {
  if (typeof value !== 'object' || value === null) return false;
  return typeof value.toJSON !== 'function' && !(value instanceof RegExp || value instanceof Error);
}

/**
 * A copy of JSON with every member renamed, at any depth. No name comes out with an underscore in front,
 * so none becomes `__proto__`.
 */
function renamed(value, rename) {
  if (isArray(value)) return value.map((item) => renamed(item, rename));
  if (!hasMembers(value)) return value;
  const copy = {};
  for (const [name, item] of entries(value)) copy[rename(name)] = renamed(item, rename);
  return copy;
}

exports.toCamelCase = (value) => renamed(value, camelName);
exports.toSnakeCase = (value) => renamed(value, snakeName);
exports.snakeParameter = snakeParameter;
