/**
 * Node's `EventEmitter`: what listed modules and reactors use of it. A function and not a class,
 * because older code calls it on its own objects, or only takes over its prototype.
 */
const DEFAULT_MAX_LISTENERS = 10;
const ERROR_MONITOR = Symbol('events.errorMonitor');

/** emitter → name → listeners in order. Beside the emitter, so that none has to be constructed. */
const registry = new WeakMap();

function listsOf(emitter) {
  const known = registry.get(emitter);
  if (known !== undefined) return known;
  const lists = new Map();
  registry.set(emitter, lists);
  return lists;
}

const entriesOf = (emitter, name) => registry.get(emitter)?.get(name) ?? [];

function add(emitter, name, listener, { once = false, first = false } = {}) {
  if (typeof listener !== 'function') throw new TypeError('The listener must be a function.');
  const lists = listsOf(emitter);
  if (lists.has('newListener')) emitter.emit('newListener', name, listener);
  const entry = { listener, once };
  const known = entriesOf(emitter, name);
  lists.set(name, first ? [entry, ...known] : [...known, entry]);
  return emitter;
}

function removeEntry(emitter, name, entry) {
  const lists = listsOf(emitter);
  const left = entriesOf(emitter, name).filter((other) => other !== entry);
  if (left.length > 0) lists.set(name, left);
  else lists.delete(name);
  if (lists.has('removeListener')) emitter.emit('removeListener', name, entry.listener);
}

function unhandled(error) {
  if (error instanceof Error) return error;
  const failure = new Error('Unhandled error.');
  failure.code = 'ERR_UNHANDLED_ERROR';
  failure.context = error;
  return failure;
}

function EventEmitter() {}

const METHODS = {
  on(name, listener) {
    return add(this, name, listener);
  },

  once(name, listener) {
    return add(this, name, listener, { once: true });
  },

  prependListener(name, listener) {
    return add(this, name, listener, { first: true });
  },

  prependOnceListener(name, listener) {
    return add(this, name, listener, { once: true, first: true });
  },

  off(name, listener) {
    const entry = entriesOf(this, name).findLast((known) => known.listener === listener);
    if (entry !== undefined) removeEntry(this, name, entry);
    return this;
  },

  removeAllListeners(name) {
    if (name === undefined) registry.delete(this);
    else registry.get(this)?.delete(name);
    return this;
  },

  emit(name, ...args) {
    const entries = entriesOf(this, name);
    if (name === 'error') {
      if (entriesOf(this, ERROR_MONITOR).length > 0) this.emit(ERROR_MONITOR, ...args);
      if (entries.length === 0) throw unhandled(args[0]);
    }
    for (const entry of entries) {
      if (entry.once) removeEntry(this, name, entry);
      Reflect.apply(entry.listener, this, args);
    }
    return entries.length > 0;
  },

  listenerCount(name, listener) {
    const entries = entriesOf(this, name);
    if (listener === undefined) return entries.length;
    return entries.filter((entry) => entry.listener === listener).length;
  },

  listeners(name) {
    return entriesOf(this, name).map(({ listener }) => listener);
  },

  rawListeners(name) {
    return this.listeners(name);
  },

  eventNames() {
    return [...(registry.get(this)?.keys() ?? [])];
  },

  setMaxListeners() {
    return this;
  },

  getMaxListeners() {
    return DEFAULT_MAX_LISTENERS;
  },
};
METHODS.addListener = METHODS.on;
METHODS.removeListener = METHODS.off;
// Enumerable as in Node, for code that copies them.
Object.assign(EventEmitter.prototype, METHODS);

EventEmitter.EventEmitter = EventEmitter;
EventEmitter.defaultMaxListeners = DEFAULT_MAX_LISTENERS;
EventEmitter.captureRejectionSymbol = Symbol.for('nodejs.rejection');
EventEmitter.errorMonitor = ERROR_MONITOR;
EventEmitter.listenerCount = (emitter, name) => emitter.listenerCount(name);
EventEmitter.getEventListeners = (emitter, name) => emitter.listeners(name);
EventEmitter.setMaxListeners = () => {};
EventEmitter.once = (emitter, name) =>
  new Promise((resolve, reject) => {
    const fail = (error) => {
      emitter.removeListener(name, succeed);
      reject(error);
    };
    const succeed = (...args) => {
      emitter.removeListener('error', fail);
      resolve(args);
    };
    emitter.once(name, succeed);
    if (name !== 'error') emitter.once('error', fail);
  });
module.exports = EventEmitter;
