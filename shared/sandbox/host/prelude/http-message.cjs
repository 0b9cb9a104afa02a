/** `http.IncomingMessage` of a response: its head, and its body as a stream. */
const { ByteStream } = require('byte-stream');
const { bytesOfContent, contentOf } = require('fetch-body');

/** Of these only the first counts (Node's `message.headers`). */
const SINGLE = new Set([
  ...['age', 'authorization', 'content-length', 'content-type', 'etag', 'expires', 'from', 'host'],
  ...['if-modified-since', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards'],
  ...['proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent'],
]);

function define(target, name, value) {
  const descriptor = { value, enumerable: true, configurable: true, writable: true };
  Object.defineProperty(target, name, descriptor);
}

/** Names in lower case; repeated ones joined as Node does, `set-cookie` always a list. */
function headersOf(pairs) {
  const headers = {};
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    const known = Object.hasOwn(headers, key) ? headers[key] : undefined;
    if (key === 'set-cookie') define(headers, key, [...(known ?? []), value]);
    else if (known === undefined) define(headers, key, value);
    else if (!SINGLE.has(key))
      define(headers, key, known + (key === 'cookie' ? '; ' : ', ') + value);
  }
  return headers;
}

class IncomingMessage extends ByteStream {
  constructor(received, socket) {
    super(() => bytesOfContent(contentOf(received)));
    this.statusCode = received.status;
    this.statusMessage = received.status_text;
    this.headers = headersOf(received.headers);
    this.rawHeaders = received.headers.flat();
    this.trailers = {};
    this.rawTrailers = [];
    this.httpVersion = '1.1';
    this.httpVersionMajor = 1;
    this.httpVersionMinor = 1;
    this.complete = true;
    this.url = '';
    this.socket = socket;
    this.connection = socket;
  }

  setTimeout() {
    return this;
  }
}

exports.IncomingMessage = IncomingMessage;
