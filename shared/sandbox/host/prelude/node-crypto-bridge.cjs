/**
 * Between `crypto` inside and the host, which carries every operation out: a line of JSON and bytes as
 * characters, either way. Text of a script goes as it is, since the host decodes faster than code here.
 */
const { Buffer } = require('node-buffer');
const utf8 = require('utf8');

const { stringify, parse } = JSON;
const { apply } = Reflect;
const { fromCharCode } = String;
const CHUNK = 8192;
const ENCODINGS = {
  __proto__: null,
  ...{ utf8: 'utf8', 'utf-8': 'utf8', hex: 'hex', base64: 'base64', base64url: 'base64url' },
  ...{ latin1: 'latin1', binary: 'latin1', ascii: 'ascii', utf16le: 'utf16le', ucs2: 'utf16le' },
  ...{ 'utf-16le': 'utf16le', 'ucs-2': 'utf16le' },
};
const CLASSES = { __proto__: null, TypeError, RangeError, Error };

function fail(code, message, name = 'TypeError') {
  const error = new CLASSES[name](message);
  if (code !== undefined) error.code = code;
  throw error;
}

/** Each byte a character. */
function toText(bytes) {
  if (bytes.length <= CHUNK) return apply(fromCharCode, undefined, bytes);
  let text = '';
  for (let at = 0; at < bytes.length; at += CHUNK) {
    text += apply(fromCharCode, undefined, bytes.subarray(at, at + CHUNK));
  }
  return text;
}

function toBuffer(text, from = 0, to = text.length) {
  const buffer = Buffer.alloc(to - from);
  for (let at = from; at < to; at += 1) buffer[at - from] = text.charCodeAt(at);
  return buffer;
}

/** The bytes that `value` shows, whatever kind of view it is; `undefined` when it is none. */
function viewOf(value) {
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
}

/** A piece of a question: text in an encoding, or bytes. Throws as Node does when it is neither. */
function piece(value, encoding, name = 'data') {
  if (typeof value === 'string') {
    const known = ENCODINGS[`${encoding ?? 'utf8'}`.toLowerCase()] ?? 'utf8';
    return { text: value, encoding: known };
  }
  const view = viewOf(value);
  if (view !== undefined) return { text: toText(view), encoding: 'latin1' };
  return fail(
    'ERR_INVALID_ARG_TYPE',
    `The "${name}" argument must be of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView.`,
  );
}

/** Asks the host. `{ value, bytes: [Buffer…] }`; throws what the host says is wrong. */
function ask(operation, values, pieces = []) {
  const lengths = pieces.map((part) => {
    if (part === undefined) return null;
    return part.encoding === 'latin1' ? part.text.length : [part.text.length, part.encoding];
  });
  const blob = pieces.reduce((text, part) => (part === undefined ? text : text + part.text), '');
  const answer = native('crypto', operation, `${stringify([lengths, ...values])}\n${blob}`);
  if (answer === undefined) fail('ERR_CRYPTO_OPERATION_FAILED', 'Crypto operation failed', 'Error');
  if (answer[0] === '!') throwTold(parse(answer.slice(1)));
  const end = answer.indexOf('\n');
  const [value, ...sizes] = parse(answer.slice(0, end));
  let at = end + 1;
  return {
    value,
    bytes: sizes.map((size) => {
      at += size;
      return toBuffer(answer, at - size, at);
    }),
  };
}

/** Errors that the host told; `operate` of the web's interface hides them. */
const hostErrors = new WeakSet();

/** OpenSSL's errors have library and reason too. */
function throwTold({ name, code, message }) {
  const error = new CLASSES[name](message);
  const [kind, , library, , reason] = message.split(':');
  if (kind === 'error' && reason !== undefined) Object.assign(error, { library, reason });
  if (code !== undefined) error.code = code;
  hostErrors.add(error);
  throw error;
}

/** Bytes to what the caller asked for: a Buffer, or text. */
function output(buffer, encoding) {
  return encoding === undefined || encoding === null || encoding === 'buffer'
    ? buffer
    : buffer.toString(encoding);
}

/** Callbacks that wait. What one run left behind is not for the next one in this context. */
let queue = [];
internal.onReset(() => {
  queue = [];
});

/** Runs `work` and gives its result to `callback` later, as Node does; a wrong argument throws at once. */
function later(callback, work) {
  if (typeof callback !== 'function') {
    fail('ERR_INVALID_ARG_TYPE', 'The "callback" argument must be of type function.');
  }
  let results;
  try {
    results = [null, ...work()];
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) throw error;
    results = [error];
  }
  if (queue.length === 0) require('node-timers').setImmediate(drain);
  queue.push(() => apply(callback, undefined, results));
}

/** One timer for all that wait: their number is bounded. */
function drain() {
  const due = queue;
  queue = [];
  for (let index = 0; index < due.length; index += 1) {
    try {
      due[index]();
    } catch (error) {
      internal.fail(error);
    }
  }
}

/** Pieces gathered for one operation at the end; runs of bytes become one piece. */
class Pieces {
  #list = [];

  add(part) {
    const last = this.#list.at(-1);
    const bytes = part.encoding === 'utf8' && this.#list.length >= 1024 ? encoded(part) : part;
    if (last?.encoding === 'latin1' && bytes.encoding === 'latin1') {
      this.#list[this.#list.length - 1] = { text: last.text + bytes.text, encoding: 'latin1' };
    } else this.#list.push(bytes);
  }

  get all() {
    return this.#list;
  }

  copy() {
    const copy = new Pieces();
    copy.#list = [...this.#list];
    return copy;
  }
}

const encoded = ({ text }) => ({ text: toText(utf8.encode(text)), encoding: 'latin1' });

Object.assign(exports, {
  ...{ Buffer, Pieces, ask, fail, later, output, piece, toBuffer, toText, viewOf },
  isHostError: (error) => hostErrors.has(error),
});
