/**
 * `http.ClientRequest`: gathers what is written, sends it when it is ended, and answers by events. The
 * exchange itself is the gateway's; there is no socket here, only an object that looks like one.
 */
const EventEmitter = require('node-events');
const { Buffer } = require('node-buffer');
const { URL } = require('node-url');
const { setTimeout, clearTimeout } = require('node-timers');
const { later } = require('byte-stream');
const { TOKEN } = require('headers');
const { extract } = require('fetch-body');
const exchange = require('fetch-exchange');
const { IncomingMessage } = require('http-message');
const { urlOf } = require('http-target');

function failure(message, code) {
  const error = new Error(message);
  error.code = code;
  return error;
}

function checkedName(name) {
  if (TOKEN.test(`${name}`)) return `${name}`;
  throw failure('The name of a header is not valid.', 'ERR_INVALID_HTTP_TOKEN');
}

function checkedValue(value) {
  const text = `${value}`;
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return text;
  throw failure('The value of a header has characters that are not allowed.', 'ERR_INVALID_CHAR');
}

/** A copy: a Buffer may be changed before the end. */
function bytesOfChunk(chunk, encoding) {
  if (typeof chunk === 'string') {
    return Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8');
  }
  if (!ArrayBuffer.isView(chunk)) {
    throw failure('A chunk is a string or a Buffer.', 'ERR_INVALID_ARG_TYPE');
  }
  return Buffer.from(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength).slice());
}

/** What code asks of a socket before it writes: whether it is connected. */
function standInSocket(encrypted) {
  const socket = new EventEmitter();
  const itself = () => socket;
  return Object.assign(socket, {
    ...{ connecting: false, destroyed: false, encrypted, authorized: encrypted, writable: true },
    ...{ setKeepAlive: itself, setNoDelay: itself, setTimeout: itself, ref: itself, unref: itself },
    ...{ cork: itself, uncork: itself, destroy: itself },
  });
}

const CLIENT_KEYS = ['cert', 'key', 'pfx'];

class ClientRequest extends EventEmitter {
  #url;
  #chunks = [];
  #headers = new Map();
  #cancel = () => undefined;
  #timer;
  #sent = false;
  #response;
  #destroyed = false;
  #closed = false;

  constructor(protocol, options, callback) {
    super();
    this.#url = urlOf(options, protocol);
    const carriers = [options, options.agent?.options ?? {}];
    if (carriers.some((one) => CLIENT_KEYS.some((name) => one[name]))) {
      throw failure('Client certificates are not available here.', 'ERR_NOT_AVAILABLE');
    }
    this.method = `${options.method ?? 'GET'}`.toUpperCase();
    if (!TOKEN.test(this.method)) {
      throw failure('The method is not valid.', 'ERR_INVALID_HTTP_TOKEN');
    }
    const { origin, pathname, search, hostname } = new URL(this.#url);
    Object.assign(this, { protocol, host: hostname, path: `${pathname}${search}` });
    this.socket = standInSocket(origin.startsWith('https'));
    this.connection = this.socket;
    this.reusedSocket = false;
    this.#setAll(options.headers);
    if (options.auth && !this.hasHeader('authorization')) {
      this.setHeader('Authorization', `Basic ${Buffer.from(`${options.auth}`).toString('base64')}`);
    }
    if (callback !== undefined) this.once('response', callback);
    if (options.timeout) this.setTimeout(options.timeout);
    this.#obey(options.signal);
    later(() => this.emit('socket', this.socket));
  }

  get destroyed() {
    return this.#destroyed;
  }

  get aborted() {
    return this.#destroyed;
  }

  get writableEnded() {
    return this.#sent;
  }

  get finished() {
    return this.#sent;
  }

  get headersSent() {
    return this.#sent;
  }

  setHeader(name, value) {
    const checked = checkedName(name);
    const values = (Array.isArray(value) ? value : [value]).map(checkedValue);
    this.#headers.set(checked.toLowerCase(), { name: checked, value, values });
    return this;
  }

  getHeader(name) {
    return this.#headers.get(`${name}`.toLowerCase())?.value;
  }

  hasHeader(name) {
    return this.#headers.has(`${name}`.toLowerCase());
  }

  removeHeader(name) {
    this.#headers.delete(`${name}`.toLowerCase());
  }

  getHeaders() {
    return Object.fromEntries(Array.from(this.#headers, ([key, { value }]) => [key, value]));
  }

  getHeaderNames() {
    return [...this.#headers.keys()];
  }

  write(chunk, encoding, callback) {
    if (this.#sent) throw failure('write after end', 'ERR_STREAM_WRITE_AFTER_END');
    const done = typeof encoding === 'function' ? encoding : callback;
    this.#chunks.push(bytesOfChunk(chunk, encoding));
    if (typeof done === 'function') later(done);
    return true;
  }

  end(chunk, encoding, callback) {
    const done = [chunk, encoding, callback].find((one) => typeof one === 'function');
    if (typeof chunk !== 'function' && chunk !== undefined && chunk !== null) {
      this.write(chunk, typeof encoding === 'string' ? encoding : undefined);
    }
    if (typeof done === 'function') this.once('finish', done);
    if (this.#sent || this.#destroyed) return this;
    this.#sent = true;
    void this.#send();
    later(() => this.emit('finish'));
    return this;
  }

  setTimeout(wait_ms, callback) {
    clearTimeout(this.#timer);
    if (typeof callback === 'function') this.once('timeout', callback);
    if (wait_ms > 0) this.#timer = setTimeout(() => this.emit('timeout'), wait_ms);
    return this;
  }

  abort() {
    if (this.#destroyed) return;
    later(() => this.emit('abort'));
    this.destroy();
  }

  /** Gives the request up; without a response yet that is an error, as in Node. */
  destroy(error) {
    if (this.#destroyed) return this;
    this.#destroyed = true;
    clearTimeout(this.#timer);
    this.#cancel();
    if (this.#response !== undefined) this.#response.destroy(error);
    else later(() => this.emit('error', error ?? failure('socket hang up', 'ECONNRESET')));
    later(() => this.#close());
    return this;
  }

  flushHeaders() {}

  setNoDelay() {}

  setSocketKeepAlive() {}

  #setAll(headers = {}) {
    const isList = Array.isArray(headers);
    const isFlat = isList && !Array.isArray(headers[0]);
    const pairs = isFlat
      ? headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]]] : []))
      : isList
        ? headers
        : Object.entries(headers);
    for (const [name, value] of pairs) if (value !== undefined) this.setHeader(name, value);
  }

  #obey(signal) {
    if (signal === undefined || signal === null) return;
    const abort = () => {
      const error = failure('The operation was aborted', 'ABORT_ERR');
      error.name = 'AbortError';
      error.cause = signal.reason;
      this.destroy(error);
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  }

  async #send() {
    const body = this.#chunks.length === 0 ? undefined : extract(Buffer.concat(this.#chunks));
    this.#chunks = [];
    const headers = Array.from(this.#headers.values(), ({ name, values }) =>
      values.map((value) => [name, value]),
    ).flat();
    const message = { url: this.#url, method: this.method, headers };
    try {
      const received = await exchange(
        { ...message, redirect: 'manual', decode: false },
        body,
        (cancel) => {
          this.#cancel = cancel;
          if (this.#destroyed) cancel();
        },
      );
      later(() => this.#answer(received));
    } catch (error) {
      later(() => this.#fail(error));
    }
  }

  #answer(received) {
    if (this.#destroyed) return;
    clearTimeout(this.#timer);
    const response = new IncomingMessage(received, this.socket);
    response.req = this;
    this.res = response;
    this.#response = response;
    response.once('close', () => later(() => this.#close()));
    // Nobody reads it: it must end all the same.
    if (!this.emit('response', response)) response.resume();
  }

  #fail(error) {
    if (this.#destroyed) return;
    this.#destroyed = true;
    clearTimeout(this.#timer);
    later(() => this.#close());
    this.emit('error', error);
  }

  #close() {
    if (this.#closed) return;
    this.#closed = true;
    this.emit('close');
  }
}

exports.ClientRequest = ClientRequest;
