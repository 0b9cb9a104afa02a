/** The module `node-fetch` (2 and 3): our fetch with its extras, bodies as streams in Node's form. */
const { send, Request: BaseRequest, Response: BaseResponse } = require('fetch');
const { Headers: BaseHeaders } = require('headers');
const { AbortController, AbortSignal } = require('abort');
const { bytesOfContent, takeContent } = require('fetch-body');
const { ByteStream } = require('byte-stream');
const { Buffer } = require('node-buffer');

class FetchError extends Error {
  constructor(message, type, cause) {
    super(message);
    this.name = 'FetchError';
    this.type = type;
    if (cause?.code !== undefined) {
      this.code = cause.code;
      this.errno = cause.code;
    }
  }
}

class AbortError extends Error {
  constructor(message = 'The user aborted a request.') {
    super(message);
    this.name = 'AbortError';
    this.type = 'aborted';
  }
}

class Headers extends BaseHeaders {
  /** name → all values, as node-fetch 2 has it. */
  raw() {
    const raw = {};
    for (const [name, value] of this) {
      const values = Object.hasOwn(raw, name) ? [...raw[name], value] : [value];
      const descriptor = { value: values, enumerable: true, configurable: true, writable: true };
      Object.defineProperty(raw, name, descriptor);
    }
    return raw;
  }
}

class Request extends BaseRequest {}

class Response extends BaseResponse {
  #headers;
  #stream;

  get headers() {
    this.#headers ??= new Headers(super.headers);
    return this.#headers;
  }

  get body() {
    this.#stream ??= new ByteStream(() => bytesOfContent(takeContent(this)));
    return this.#stream;
  }

  async buffer() {
    return Buffer.from(await this.arrayBuffer());
  }
}

/** `timeout` and `compress` are node-fetch's own; `agent` and `follow` have no effect here. */
async function fetch(input, init = {}) {
  const { timeout = 0, compress = true } = init;
  const timed = timeout > 0 ? AbortSignal.timeout(timeout) : undefined;
  const signals = [init.signal, timed].filter((signal) => signal !== undefined && signal !== null);
  const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
  const request = new Request(input, signal === undefined ? init : { ...init, signal });
  try {
    return await send(request, Response, Boolean(compress));
  } catch (error) {
    if (timed?.aborted) throw new FetchError('The request took too long.', 'request-timeout');
    if (request.signal.aborted) throw new AbortError();
    const type = error?.code === 'ERR_REDIRECT' ? 'no-redirect' : 'system';
    throw new FetchError(`request failed, reason: ${error?.message}`, type, error);
  }
}

module.exports = fetch;
Object.assign(fetch, {
  ...{ default: fetch, fetch, Headers, Request, Response, FetchError, AbortError, AbortController },
  isRedirect: (status) => [301, 302, 303, 307, 308].includes(status),
});
Object.defineProperty(fetch, '__esModule', { value: true });
