/** `fetch`, `Request` and `Response` (WHATWG Fetch). The gateway makes the request; see script-fetch. */
const { URL } = require('node-url');
const { Headers, pairsOf } = require('headers');
const { AbortController } = require('abort');
const { Body, contentOf, extract, shareContent, takeContent } = require('fetch-body');
const exchange = require('fetch-exchange');

const METHOD = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const REFUSED_METHODS = ['CONNECT', 'TRACE', 'TRACK'];
const REDIRECTS = [301, 302, 303, 307, 308];
const REDIRECT_MODES = ['follow', 'manual', 'error'];
const NULL_BODY_STATUSES = [101, 204, 205, 304];

function readMethod(value) {
  const method = `${value}`;
  if (!METHOD.test(method) || REFUSED_METHODS.includes(method.toUpperCase())) {
    throw new TypeError('The method is not allowed.');
  }
  return method.toUpperCase();
}

function readUrl(value) {
  const url = new URL(value);
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('The URL must not contain a user name or password.');
  }
  return url.href;
}

class Request extends Body {
  #url;
  #method;
  #headers;
  #signal;
  #redirect;

  constructor(input, init = {}) {
    const base = input instanceof Request ? input : undefined;
    const options = init ?? {};
    const method = readMethod(options.method ?? base?.method ?? 'GET');
    const given = options.body ?? undefined;
    if (given !== undefined && (method === 'GET' || method === 'HEAD')) {
      throw new TypeError('A request with this method cannot have a body.');
    }
    const inherited = base === undefined || given !== undefined ? undefined : takeContent(base);
    const content = given === undefined ? inherited : extract(given);
    super(content);
    this.#url = base === undefined ? readUrl(input) : base.url;
    this.#method = method;
    this.#headers = new Headers(options.headers ?? base?.headers);
    if (given !== undefined && content.type && !this.#headers.has('content-type')) {
      this.#headers.set('Content-Type', content.type);
    }
    // `null` means none, also when the request it is made of has one.
    const signal = options.signal === undefined ? base?.signal : options.signal;
    this.#signal = signal ?? new AbortController().signal;
    this.#redirect = options.redirect ?? base?.redirect ?? 'follow';
    if (!REDIRECT_MODES.includes(this.#redirect)) {
      throw new TypeError('redirect must be follow, manual or error.');
    }
  }

  get url() {
    return this.#url;
  }

  get method() {
    return this.#method;
  }

  get headers() {
    return this.#headers;
  }

  get signal() {
    return this.#signal;
  }

  get redirect() {
    return this.#redirect;
  }

  /** Read by libraries that ask what is supported; there are no cookies here to include. */
  get credentials() {
    return 'omit';
  }

  clone() {
    const { method, headers, signal, redirect } = this;
    return new Request(this.#url, { method, headers, signal, redirect, body: shareContent(this) });
  }

  get [Symbol.toStringTag]() {
    return 'Request';
  }
}

class Response extends Body {
  #status;
  #statusText;
  #headers;
  #url = '';
  #redirected = false;
  #type = 'default';

  constructor(body = null, { status = 200, statusText = '', headers } = {}) {
    const content = extract(body);
    super(content);
    if (!Number.isInteger(status) || status < 200 || status > 599) {
      throw new RangeError('The status of a Response is an integer of 200 to 599.');
    }
    if (content !== undefined && NULL_BODY_STATUSES.includes(status)) {
      throw new TypeError('A response with this status has no body.');
    }
    this.#status = status;
    this.#statusText = `${statusText}`;
    this.#headers = new Headers(headers);
    if (content?.type && !this.#headers.has('content-type')) {
      this.#headers.set('Content-Type', content.type);
    }
  }

  static json(value, init = {}) {
    const headers = new Headers(init.headers);
    if (!headers.has('content-type')) headers.set('Content-Type', 'application/json');
    return new Response(JSON.stringify(value), { ...init, headers });
  }

  static error() {
    const response = new Response();
    response.#status = 0;
    response.#type = 'error';
    return response;
  }

  static redirect(url, status = 302) {
    if (!REDIRECTS.includes(status)) throw new RangeError('The status is none of a redirect.');
    return new Response(null, { status, headers: { Location: new URL(url).href } });
  }

  get status() {
    return this.#status;
  }

  get ok() {
    return this.#status >= 200 && this.#status <= 299;
  }

  get statusText() {
    return this.#statusText;
  }

  get headers() {
    return this.#headers;
  }

  get url() {
    return this.#url;
  }

  get redirected() {
    return this.#redirected;
  }

  get type() {
    return this.#type;
  }

  clone() {
    const { status, statusText, headers } = this;
    const init = { status: Math.max(status, 200), statusText, headers };
    const copy = new this.constructor(shareContent(this), init);
    return Response.#place(copy, this);
  }

  static #place(response, { status, url, redirected, type }) {
    response.#status = status;
    response.#url = url;
    response.#redirected = redirected;
    response.#type = type;
    return response;
  }

  get [Symbol.toStringTag]() {
    return 'Response';
  }

  static {
    /** The response that the gateway brought, of this class or one below it. */
    exports.responseOf = (ResponseClass, received) => {
      const { url, redirected, status, status_text: statusText, headers } = received;
      const body = NULL_BODY_STATUSES.includes(status) ? null : contentOf(received);
      const init = { status: Math.min(Math.max(status, 200), 599), statusText, headers };
      const response = new ResponseClass(body, init);
      return Response.#place(response, { status, url, redirected, type: 'basic' });
    };
  }
}

/** As fetch fails: a TypeError; `code` and the cause say why. */
function fetchFailure(error) {
  const failure = new TypeError(error.message, { cause: error });
  if (error.code !== undefined) failure.code = error.code;
  return failure;
}

/** Makes the request; `decode` as in script-fetch. Rejects with the signal's reason once it aborts. */
function send(request, ResponseClass, decode) {
  const { url, method, headers, redirect, signal } = request;
  const { promise, resolve, reject } = Promise.withResolvers();
  let cancel = () => undefined;
  const abort = () => {
    cancel();
    reject(signal.reason);
  };
  if (signal.aborted) {
    abort();
    return promise;
  }
  signal.addEventListener('abort', abort, { once: true });
  const message = { url, method, headers: pairsOf(headers), redirect, decode };
  exchange(message, takeContent(request), (giveUp) => {
    cancel = giveUp;
    if (signal.aborted) cancel();
  })
    .then((received) => resolve(exports.responseOf(ResponseClass, received)))
    .catch((error) => reject(fetchFailure(error)))
    .finally(() => signal.removeEventListener('abort', abort));
  return promise;
}

exports.fetch = async function fetch(input, init) {
  return send(new Request(input, init), Response, true);
};
exports.send = send;
exports.Request = Request;
exports.Response = Response;
