/** Timers. The host keeps the time; the number of waiting timers is bounded. */
const waiting = new Map();
const { get, set, delete: remove, clear: empty } = Map.prototype;
const { apply } = Reflect;
let last = 0;
let count = 0;

/** Another run has this context now. Ids go on, so that an old one never means a new timer. */
internal.onReset(() => {
  apply(empty, waiting, []);
  count = 0;
});

function start(callback, delay, args, repeats) {
  if (typeof callback !== 'function') throw new TypeError('The callback must be a function.');
  if (count >= limits.timers_max) {
    throw new RangeError(`At most ${limits.timers_max} timers may wait at the same time.`);
  }
  const id = ++last;
  const wait = Math.min(Math.max(Math.trunc(Number(delay)) || 0, repeats ? 1 : 0), 0x7fffffff);
  apply(set, waiting, [id, { callback, args, repeats, wait }]);
  count += 1;
  native('timer', id, wait);
  return id;
}

function clear(id) {
  const key = typeof id === 'object' && id !== null ? Number(id) : id;
  if (apply(remove, waiting, [key])) {
    count -= 1;
    native('clear', key, 0);
  }
}

exports.setTimeout = (callback, delay, ...args) => start(callback, delay, args, false);
exports.setInterval = (callback, delay, ...args) => start(callback, delay, args, true);
exports.setImmediate = (callback, ...args) => start(callback, 0, args, false);
exports.clearTimeout = clear;
exports.clearInterval = clear;
exports.clearImmediate = clear;
exports.queueMicrotask = (callback) => {
  if (typeof callback !== 'function') throw new TypeError('The callback must be a function.');
  void (async () => {
    await undefined;
    callback();
  })();
};

/** The host says that timer `id` is due. What the callback throws ends the run as an error. */
exports.fire = (id) => {
  const timer = apply(get, waiting, [id]);
  if (timer === undefined) return;
  if (timer.repeats) native('timer', id, timer.wait);
  else {
    apply(remove, waiting, [id]);
    count -= 1;
  }
  try {
    apply(timer.callback, undefined, timer.args);
  } catch (error) {
    internal.fail(error);
  }
};
