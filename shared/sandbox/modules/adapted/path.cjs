/** The part of Node's `path` (POSIX) that bundled modules use. It only joins and cuts text. */
function normalize(path) {
  const isAbsolute = path.startsWith('/');
  const kept = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') kept.push(part);
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop();
    else if (!isAbsolute) kept.push('..');
  }
  const end = kept.length > 0 && path.endsWith('/') ? '/' : '';
  return `${isAbsolute ? '/' : ''}${kept.join('/')}${end}` || '.';
}

function basename(path, suffix = '') {
  const name = path.replace(/\/+$/, '').split('/').at(-1);
  return suffix !== '' && name !== suffix && name.endsWith(suffix)
    ? name.slice(0, -suffix.length)
    : name;
}

function dirname(path) {
  const at = path.replace(/\/+$/, '').lastIndexOf('/');
  if (at === -1) return '.';
  return at === 0 ? '/' : path.slice(0, at);
}

const extname = (path) => /[^/](\.[^./]*)\/*$/.exec(path)?.[1] ?? '';
const join = (...parts) => normalize(parts.filter((part) => part !== '').join('/'));

function resolve(...parts) {
  const from = parts.findLastIndex((part) => part.startsWith('/'));
  return normalize(`/${parts.slice(Math.max(from, 0)).join('/')}`).replace(/(.)\/$/, '$1');
}

const path = { normalize, basename, dirname, extname, join, resolve, sep: '/', delimiter: ':' };
path.isAbsolute = (text) => text.startsWith('/');
path.posix = path;
module.exports = path;
