/** Node's `EventEmitter`: what listed modules and reactors use of it. */
class EventEmitter {
  #listeners = new Map();

  on(name, listener) {
    if (typeof listener !== 'function') throw new TypeError('The listener must be a function.');
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), { listener, once: false }]);
    return this;
  }

  once(name, listener) {
    this.on(name, listener);
    this.#listeners.get(name).at(-1).once = true;
    return this;
  }

  prependListener(name, listener) {
    this.on(name, listener);
    const list = this.#listeners.get(name);
    list.unshift(list.pop());
    return this;
  }

  off(name, listener) {
    const list = this.#listeners.get(name) ?? [];
    const at = list.findLastIndex((entry) => entry.listener === listener);
    if (at !== -1) this.#listeners.set(name, list.toSpliced(at, 1));
    return this;
  }

  removeAllListeners(name) {
    if (name === undefined) this.#listeners.clear();
    else this.#listeners.delete(name);
    return this;
  }

  emit(name, ...args) {
    const list = this.#listeners.get(name) ?? [];
    if (list.length === 0 && name === 'error') throw args[0] ?? new Error('Unhandled error.');
    for (const entry of list) {
      if (entry.once) this.#removeEntry(name, entry);
      Reflect.apply(entry.listener, this, args);
    }
    return list.length > 0;
  }

  #removeEntry(name, entry) {
    const list = this.#listeners.get(name) ?? [];
    this.#listeners.set(
      name,
      list.filter((other) => other !== entry),
    );
  }

  listenerCount(name) {
    return this.#listeners.get(name)?.length ?? 0;
  }

  listeners(name) {
    return (this.#listeners.get(name) ?? []).map(({ listener }) => listener);
  }

  eventNames() {
    return [...this.#listeners.keys()].filter((name) => this.listenerCount(name) > 0);
  }

  setMaxListeners() {
    return this;
  }
}
EventEmitter.prototype.addListener = EventEmitter.prototype.on;
EventEmitter.prototype.removeListener = EventEmitter.prototype.off;
EventEmitter.EventEmitter = EventEmitter;
EventEmitter.once = (emitter, name) =>
  new Promise((resolve, reject) => {
    emitter.once(name, (...args) => resolve(args));
    if (name !== 'error') emitter.once('error', reject);
  });
module.exports = EventEmitter;
