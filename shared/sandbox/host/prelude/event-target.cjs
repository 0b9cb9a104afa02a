/** `Event`, `CustomEvent` and `EventTarget` (WHATWG DOM) without a tree: no capture, no bubbling. */
class Event {
  #type;
  #cancelable;
  #canceled = false;
  #stopped = false;
  target = null;
  currentTarget = null;
  timeStamp = Date.now();

  constructor(type, { cancelable = false } = {}) {
    this.#type = `${type}`;
    this.#cancelable = Boolean(cancelable);
  }

  get type() {
    return this.#type;
  }

  get cancelable() {
    return this.#cancelable;
  }

  get defaultPrevented() {
    return this.#canceled;
  }

  get isStopped() {
    return this.#stopped;
  }

  preventDefault() {
    if (this.#cancelable) this.#canceled = true;
  }

  stopImmediatePropagation() {
    this.#stopped = true;
  }

  stopPropagation() {}
}

class CustomEvent extends Event {
  constructor(type, options = {}) {
    super(type, options);
    this.detail = options.detail ?? null;
  }
}

/** What a listener throws ends the run, as an uncaught exception would. */
function notify(callback, target, event) {
  try {
    if (typeof callback === 'function') Reflect.apply(callback, target, [event]);
    else callback.handleEvent(event);
  } catch (error) {
    internal.fail(error);
  }
}

class EventTarget {
  #listeners = [];

  addEventListener(type, callback, options = {}) {
    if (callback === null || callback === undefined) return;
    const { once = false, signal } = typeof options === 'object' && options ? options : {};
    if (signal?.aborted) return;
    const known = (one) => one.type === `${type}` && one.callback === callback;
    if (this.#listeners.some(known)) return;
    this.#listeners = [...this.#listeners, { type: `${type}`, callback, once }];
    signal?.addEventListener('abort', () => this.removeEventListener(type, callback));
  }

  removeEventListener(type, callback) {
    const stays = (one) => one.type !== `${type}` || one.callback !== callback;
    this.#listeners = this.#listeners.filter(stays);
  }

  dispatchEvent(event) {
    event.target = this;
    event.currentTarget = this;
    for (const { type, callback, once } of this.#listeners) {
      if (type !== event.type) continue;
      if (once) this.removeEventListener(type, callback);
      notify(callback, this, event);
      if (event.isStopped) break;
    }
    const handler = this[`on${event.type}`];
    if (typeof handler === 'function' && !event.isStopped) notify(handler, this, event);
    event.currentTarget = null;
    return !event.defaultPrevented;
  }
}

exports.Event = Event;
exports.CustomEvent = CustomEvent;
exports.EventTarget = EventTarget;
