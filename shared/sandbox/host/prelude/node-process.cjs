/**
 * `process` and `performance` as far as code asks them for the time, the next tick and where it runs. All
 * made up here: nothing of the host's process. The clock has milliseconds, a finer one would help to spy.
 */
const EventEmitter = require('node-events');
const { later } = require('byte-stream');

const { now } = Date;
const begun_ms = now();
let latest_ms = begun_ms;

/** Never goes back, though the machine's clock may. */
function elapsed() {
  latest_ms = Math.max(latest_ms, now());
  return latest_ms - begun_ms;
}

exports.performance = {
  timeOrigin: begun_ms,
  now: elapsed,
  toJSON: () => ({ timeOrigin: begun_ms }),
};

function hrtime(earlier) {
  const passed_ms = elapsed();
  const seconds = Math.floor(passed_ms / 1000);
  const nanoseconds = (passed_ms % 1000) * 1_000_000;
  if (earlier === undefined) return [seconds, nanoseconds];
  const difference = nanoseconds - earlier[1];
  const borrow = difference < 0 ? 1 : 0;
  return [seconds - earlier[0] - borrow, difference + borrow * 1_000_000_000];
}
hrtime.bigint = () => BigInt(elapsed()) * 1_000_000n;

exports.process = Object.assign(new EventEmitter(), {
  ...{ title: 'sallyport', version: 'v24.0.0', versions: { node: '24.0.0' }, platform: 'linux' },
  ...{ arch: 'x64', pid: 1, argv: [], execArgv: [], env: {}, browser: false },
  hrtime,
  uptime: () => elapsed() / 1000,
  cwd: () => '/',
  nextTick: (callback, ...args) => {
    if (typeof callback !== 'function') throw new TypeError('The callback must be a function.');
    later(() => callback(...args));
  },
  memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }),
  emitWarning: () => undefined,
});
