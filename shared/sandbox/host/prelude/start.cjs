/**
 * Runs first in every context, before any customer code, and stays the only way in: `enter`. Whatever
 * it needs after customer code has run is captured here; prototypes may be changed by then.
 */
const { parse, stringify } = JSON;
const { apply, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
const { defineProperty } = Object;
const functionText = Function.prototype.toString;
const GeneratorPrototype = getPrototypeOf(function* () {});
const AsyncGeneratorPrototype = getPrototypeOf(async function* () {});
const testPattern = RegExp.prototype.test;
const ErrorClass = Error;
const CLASS_SOURCE = /^class\b/;
const NATIVE_SOURCE = /\{\s*\[native code\]\s*\}$/;

for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'FinalizationRegistry']) {
  delete globalThis[name];
}

/** Files of the prelude that keep something for a run: called when the next run gets this context. */
let resets;
internal.onReset = (reset) => {
  resets = { __proto__: null, reset, next: resets };
};
/** What the run may call out for; read by calls.cjs, which says what is there. */
internal.services = { __proto__: null, fetch: false, bt: false };
/** For who reads why a run failed. */
internal.hasArgs = true;

/** Counts the runs of this context. What one of them left behind cannot end another. */
let current = 0;
let ended = false;
function end(ending, text, run = current) {
  if (ended || run !== current) return;
  ended = true;
  native('done', ending, text);
}

function endWithError(error, run = current) {
  const endRun = (ending, text) => end(ending, text, run);
  try {
    require('errors-to-result').describe(error, endRun, stringify);
  } catch {
    endRun('error', '{"name":"Error","errors":{"error":["The error could not be read."]}}');
  }
}

internal.fail = (error) => endWithError(error);

function endWithValue(value, run) {
  let text;
  try {
    text = stringify(value);
  } catch (error) {
    return endWithError(error, run);
  }
  if (text === undefined) return end('ok', 'null', run);
  if (text.length > limits.result_bytes_max) return end('result_too_large', '', run);
  return end('ok', text, run);
}

/** As what compilers make of an ECMAScript module has. */
function hasDefault(value) {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return getOwnPropertyDescriptor(value, 'default') !== undefined;
  } catch {
    // A proxy of theirs.
    return false;
  }
}

/** `undefined` when `module.exports` is a function that can be called; otherwise what is wrong. */
function whyNotCallable(module) {
  const descriptor = getOwnPropertyDescriptor(module, 'exports');
  if (descriptor === undefined || !('value' in descriptor)) {
    return 'module.exports must be assigned a function.';
  }
  if (typeof descriptor.value !== 'function') {
    const isDefault = hasDefault(descriptor.value);
    return `module.exports must be a function${isDefault ? ', in place of exports.default' : ''}.`;
  }
  const text = apply(functionText, descriptor.value, []);
  if (apply(testPattern, CLASS_SOURCE, [text])) return 'module.exports must not be a class.';
  if (apply(testPattern, NATIVE_SOURCE, [text])) {
    return 'module.exports must be a function of the code itself, not a proxy or a bound function.';
  }
  const prototype = getPrototypeOf(descriptor.value);
  if (prototype === GeneratorPrototype || prototype === AsyncGeneratorPrototype) {
    return 'module.exports must not be a generator.';
  }
  return undefined;
}

async function invoke(script, request, run) {
  let settled;
  try {
    settled = await apply(script, undefined, [request]);
  } catch (error) {
    return endWithError(error, run);
  }
  endWithValue(settled, run);
}

/** The function of a script that has been loaded in this context. */
let loaded;

/** A run begins: nothing is left here of the one before. */
function begin(fetch, bt) {
  current += 1;
  ended = false;
  missing.error = undefined;
  internal.services.fetch = fetch;
  internal.services.bt = bt;
  for (let item = resets; item !== undefined; item = item.next) item.reset();
}

function callLoaded(requestText) {
  const request = parse(requestText);
  internal.hasArgs = request.args !== null;
  if (internal.services.bt) request.bt = require('bt-client')(require('calls').call);
  return void invoke(loaded, request, current);
}

function load(factory, purpose, requestText) {
  const module = { exports: {} };
  try {
    if (typeof factory !== 'function') throw new ErrorClass('The code is not a module.');
    apply(factory, module.exports, [module.exports, scriptRequire, module]);
  } catch (error) {
    if (error === missing.error) return end('unknown_module', missing.name);
    if (purpose === 'check') {
      return end('type', stringify(`The code fails when it is loaded: ${safeMessage(error)}`));
    }
    return endWithError(error);
  }
  const wrong = whyNotCallable(module);
  if (wrong !== undefined) return end('type', stringify(wrong));
  if (purpose === 'check') return end('ok', 'null');
  loaded = getOwnPropertyDescriptor(module, 'exports').value;
  native('loaded');
  callLoaded(requestText);
}

function safeMessage(error) {
  try {
    const message = typeof error?.message === 'string' ? error.message : 'it throws';
    return `${message}`.slice(0, limits.message_characters_max);
  } catch {
    return 'it throws';
  }
}

/** The modules that customer code may `require`, by the names it uses, to ours. */
const LISTED = {
  __proto__: null,
  '@basis-theory/basis-theory-reactor-formulas-sdk-js': 'reactor-errors',
  buffer: 'node-buffer',
  crypto: 'node-crypto',
  events: 'node-events',
  http: 'node-http',
  https: 'node-https',
  'node-fetch': 'node-fetch',
  perf_hooks: 'node-process',
  process: 'process-module',
  querystring: 'node-querystring',
  url: 'node-url',
  util: 'node-util',
};
const missing = { error: undefined, name: '' };

function scriptRequire(name) {
  const plain = typeof name === 'string' && name.startsWith('node:') ? name.slice(5) : name;
  const listed = typeof plain === 'string' ? LISTED[plain] : undefined;
  const npmModule =
    listed === undefined && typeof name === 'string'
      ? require('npm-modules').load(name, scriptRequire)
      : undefined;
  if (npmModule !== undefined) return npmModule.exports;
  // `node:` is only for what Node itself brings.
  const isPackage = listed !== undefined && (plain[0] === '@' || plain === 'node-fetch');
  if (listed === undefined || (plain !== name && isPackage)) {
    missing.name = stringify(`${name}`.slice(0, 214));
    missing.error = new ErrorClass(
      `Cannot find module ${missing.name}: it is not on the list of available modules.`,
    );
    missing.error.code = 'MODULE_NOT_FOUND';
    throw missing.error;
  }
  return require(listed);
}

/** For files of the prelude that build on an npm module. */
internal.scriptRequire = scriptRequire;

/** A global that is built when it is first read, so that a context costs little. */
function lazily(name, read) {
  const settle = (value) =>
    defineProperty(globalThis, name, { value, writable: true, configurable: true });
  const get = () => {
    const value = read();
    settle(value);
    return value;
  };
  defineProperty(globalThis, name, { get, set: settle, configurable: true, enumerable: false });
}

const GLOBALS = {
  'node-buffer': ['Buffer', 'atob', 'btoa'],
  'node-url': ['URL', 'URLSearchParams'],
  'text-encoding': ['TextEncoder', 'TextDecoder'],
  'web-crypto': ['crypto', 'Crypto', 'CryptoKey', 'SubtleCrypto'],
  'node-timers': [
    ...['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
    ...['setImmediate', 'clearImmediate', 'queueMicrotask'],
  ],
  console: ['console'],
  'structured-clone': ['structuredClone'],
  fetch: ['fetch', 'Request', 'Response'],
  headers: ['Headers'],
  abort: ['AbortController', 'AbortSignal'],
  blob: ['Blob', 'File'],
  'form-data': ['FormData'],
  'dom-exception': ['DOMException'],
  'event-target': ['Event', 'CustomEvent', 'EventTarget'],
  'web-stream': ['ReadableStream'],
  'node-process': ['process', 'performance'],
};
for (const file of Object.keys(GLOBALS)) {
  for (const name of GLOBALS[file]) lazily(name, () => require(file)[name]);
}
lazily('global', () => globalThis);

/** The only way in. `bind` comes once, before anything else; `again` only after a `load`. */
module.exports = function enter(operation, first, second, third, fetch, bt) {
  if (operation === 'bind') native = first;
  else if (operation === 'load') {
    begin(fetch, bt);
    load(first, second, third);
  } else if (operation === 'again') {
    begin(fetch, bt);
    callLoaded(first);
  } else if (operation === 'timer') require('node-timers').fire(first);
  else if (operation === 'answer') internal.answer(first, second, third);
};
