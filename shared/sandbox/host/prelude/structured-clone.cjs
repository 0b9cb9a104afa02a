/** `structuredClone` for what a reactor holds: cycles kept, functions and symbols refused. */
function refuse() {
  const error = new Error('The value could not be cloned.');
  error.name = 'DataCloneError';
  throw error;
}

function cloneBuffer(value, seen) {
  if (value instanceof ArrayBuffer) return value.slice(0);
  const buffer = clone(value.buffer, seen);
  if (value instanceof DataView) return new DataView(buffer, value.byteOffset, value.byteLength);
  return new value.constructor(buffer, value.byteOffset, value.length);
}

function cloneError(value, seen) {
  const copy = Object.create(Object.getPrototypeOf(value));
  for (const name of ['name', 'message', 'stack', 'cause']) {
    if (!Object.hasOwn(value, name)) continue;
    const descriptor = { value: clone(value[name], seen), writable: true, configurable: true };
    Object.defineProperty(copy, name, descriptor);
  }
  return copy;
}

function remember(seen, value, copy) {
  seen.set(value, copy);
  return copy;
}

function clone(value, seen) {
  if (typeof value === 'function' || typeof value === 'symbol') refuse();
  if (typeof value !== 'object' || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  if (value instanceof Date) return remember(seen, value, new Date(value.getTime()));
  if (value instanceof RegExp) return remember(seen, value, new RegExp(value.source, value.flags));
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    return remember(seen, value, cloneBuffer(value, seen));
  }
  if (value instanceof Error) return remember(seen, value, cloneError(value, seen));
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) refuse();
  return cloneEntries(value, seen);
}

function cloneEntries(value, seen) {
  if (value instanceof Map) {
    const copy = remember(seen, value, new Map());
    for (const [key, item] of value) copy.set(clone(key, seen), clone(item, seen));
    return copy;
  }
  if (value instanceof Set) {
    const copy = remember(seen, value, new Set());
    for (const item of value) copy.add(clone(item, seen));
    return copy;
  }
  const copy = remember(seen, value, Array.isArray(value) ? new Array(value.length) : {});
  for (const key of Object.keys(value)) {
    const item = clone(value[key], seen);
    Object.defineProperty(copy, key, {
      value: item,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return copy;
}

exports.structuredClone = (value) => clone(value, new Map());
