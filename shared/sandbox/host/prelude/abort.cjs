/** `AbortController` and `AbortSignal` (WHATWG DOM section 3). */
const { Event, EventTarget } = require('event-target');
const { DOMException } = require('dom-exception');
const { setTimeout } = require('node-timers');

const KEY = Symbol('only made here');
let abort;

class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  onabort = null;

  constructor(key) {
    if (key !== KEY) throw new TypeError('Illegal constructor');
    super();
  }

  static abort(reason) {
    const signal = new AbortSignal(KEY);
    abort(signal, reason);
    return signal;
  }

  static timeout(wait_ms) {
    const signal = new AbortSignal(KEY);
    const reason = () => new DOMException('The operation timed out', 'TimeoutError');
    setTimeout(() => abort(signal, reason()), wait_ms);
    return signal;
  }

  static any(signals) {
    const dependent = new AbortSignal(KEY);
    const sources = [...signals];
    const first = sources.find(({ aborted }) => aborted);
    if (first !== undefined) abort(dependent, first.reason);
    else {
      for (const source of sources) {
        source.addEventListener('abort', () => abort(dependent, source.reason), { once: true });
      }
    }
    return dependent;
  }

  get aborted() {
    return this.#aborted;
  }

  get reason() {
    return this.#reason;
  }

  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }

  static {
    abort = (signal, reason) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason ?? new DOMException('This operation was aborted', 'AbortError');
      signal.dispatchEvent(new Event('abort'));
    };
  }
}

class AbortController {
  #signal = new AbortSignal(KEY);

  get signal() {
    return this.#signal;
  }

  abort(reason) {
    abort(this.#signal, reason);
  }
}

exports.AbortController = AbortController;
exports.AbortSignal = AbortSignal;
