/**
 * The interface of the npm module `jsonpath` over json-p3 (RFC 9535). Paths are parsed, never
 * evaluated as code, so script expressions as in `$[(@.length-1)]` are a syntax error; write
 * `$[-1]`.
 */
const { JSONPathEnvironment } = require('../../../../node_modules/json-p3/dist/json-p3.cjs.js');

const environment = new JSONPathEnvironment();
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

function requireObject(object) {
  if (typeof object !== 'object' || object === null) {
    throw new TypeError('The first argument must be an object or an array.');
  }
}

function nodes(object, path, count) {
  requireObject(object);
  if (count === 0) return [];
  const found = [];
  for (const node of environment.compile(stringify(path)).lazyQuery(object)) {
    found.push({ path: ['$', ...node.location], value: node.value });
    if (found.length === count) break;
  }
  return found;
}

const query = (object, path, count) => nodes(object, path, count).map(({ value }) => value);
const paths = (object, path, count) => nodes(object, path, count).map((node) => node.path);

/** The container of a place, and the key in it: an own member, since json-p3 finds no others. */
function place(object, path) {
  const keys = path.slice(1);
  const key = keys.pop();
  return { key, container: keys.reduce((value, name) => value[name], object) };
}

function value(object, path, ...replacement) {
  const [first] = nodes(object, path, 1);
  if (replacement.length === 0) return first?.value;
  if (first === undefined || first.path.length === 1) return undefined;
  const { container, key } = place(object, first.path);
  container[key] = replacement[0];
  return replacement[0];
}

function parent(object, path) {
  const [first] = nodes(object, path, 1);
  return first === undefined ? undefined : place(object, first.path).container;
}

/**
 * Replaces each value by what `change` makes of it, the deepest first, and answers the new nodes.
 */
function apply(object, path, change) {
  if (typeof change !== 'function') throw new TypeError('The third argument must be a function.');
  const found = nodes(object, path).sort((left, right) => right.path.length - left.path.length);
  for (const node of found) {
    if (node.path.length === 1) continue;
    const { container, key } = place(object, node.path);
    node.value = change(container[key]);
    container[key] = node.value;
  }
  return found;
}

/** A path as text: as it is, or put together from a list of keys as `paths` gives them. */
function stringify(path) {
  if (!Array.isArray(path)) return String(path);
  const keys = path[0] === '$' ? path.slice(1) : path;
  return keys.reduce((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return PLAIN_NAME.test(key) ? `${text}.${key}` : `${text}[${JSON.stringify(String(key))}]`;
  }, '$');
}

module.exports = { query, paths, nodes, value, parent, apply, stringify };
