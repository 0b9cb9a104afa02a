/**
 * What `Request` and `Response` have in common (WHATWG Fetch, "Body"): a body that is read once. It is in
 * memory as text or bytes, or still to come from a stream of the script's own.
 */
const utf8 = require('utf8');
const { fromBase64 } = require('base64');
const { URLSearchParams } = require('url-search-params');
const { Blob, bytesOfBlob, joinBytes } = require('blob');
const { FormData, encodeMultipart } = require('form-data');
const webStream = require('web-stream');

const isBytes = (value) => value instanceof ArrayBuffer || ArrayBuffer.isView(value);

function bytesOf(value) {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

/** What is sent or was received: one of text, bytes and source, and the `type` that goes with it. */
class Content {
  constructor({ text, bytes, source, type = '' }) {
    this.text = text;
    this.bytes = bytes;
    this.source = source;
    this.type = type;
  }
}

/** `undefined`: no body. */
function extract(init) {
  if (init === undefined || init === null) return undefined;
  if (init instanceof Content) return init;
  if (init instanceof URLSearchParams) {
    const type = 'application/x-www-form-urlencoded;charset=UTF-8';
    return new Content({ text: `${init}`, type });
  }
  if (init instanceof FormData) return new Content(encodeMultipart(init));
  if (init instanceof Blob) return new Content({ bytes: bytesOfBlob(init), type: init.type });
  if (isBytes(init)) return new Content({ bytes: bytesOf(init).slice() });
  if (typeof init === 'object' && typeof init[Symbol.asyncIterator] === 'function') {
    return new Content({ source: init });
  }
  return new Content({ text: `${init}`, type: 'text/plain;charset=UTF-8' });
}

/** Reads a stream of the script to its end. */
async function gather(source) {
  const parts = [];
  for await (const chunk of source) {
    parts.push(isBytes(chunk) ? bytesOf(chunk).slice() : utf8.encode(`${chunk}`));
  }
  return joinBytes(parts);
}

function parseForm(text) {
  const form = new FormData();
  for (const [name, value] of new URLSearchParams(text)) form.append(name, value);
  return form;
}

class Body {
  #content;
  #used = false;
  #stream;

  constructor(content) {
    this.#content = content;
  }

  get bodyUsed() {
    return this.#used || (this.#stream !== undefined && webStream.isDisturbed(this.#stream));
  }

  get body() {
    if (this.#content === undefined) return null;
    const { source } = this.#content;
    if (source instanceof webStream.ReadableStream) return source;
    this.#stream ??=
      source === undefined
        ? webStream.streamOf(() => bytesOfContent(this.#take()))
        : webStream.ReadableStream.from(source);
    return this.#stream;
  }

  /** The content, for whoever reads it; it is used then. */
  #take() {
    if (this.#used) throw new TypeError('The body has already been read.');
    this.#used = this.#content !== undefined;
    return this.#content;
  }

  async #bytes() {
    if (this.#stream?.locked || this.bodyUsed) {
      throw new TypeError('The body is locked or has already been read.');
    }
    const content = this.#take();
    if (content?.source !== undefined) return gather(content.source);
    return bytesOfContent(content);
  }

  async text() {
    if (!this.bodyUsed && !this.#stream?.locked && this.#content?.text !== undefined) {
      return withoutMark(this.#take().text);
    }
    return withoutMark(utf8.decode(await this.#bytes()));
  }

  async json() {
    return JSON.parse(await this.text());
  }

  async bytes() {
    return (await this.#bytes()).slice();
  }

  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }

  async blob() {
    return new Blob([await this.#bytes()], { type: this.headers.get('content-type') ?? '' });
  }

  async formData() {
    const type = this.headers.get('content-type') ?? '';
    if (!/^application\/x-www-form-urlencoded(?:;|$)/i.test(type)) {
      throw new TypeError('Only a body of application/x-www-form-urlencoded is read as a form.');
    }
    return parseForm(await this.text());
  }

  static {
    exports.takeContent = (body) => body.#take();
    /** The content for a second body: both may be read. */
    exports.shareContent = (body) => {
      if (body.bodyUsed || body.#stream?.locked) {
        throw new TypeError('The body is locked or has already been read.');
      }
      const content = body.#content;
      if (content?.source === undefined) return content;
      const [kept, shared] = webStream.ReadableStream.from(content.source).tee();
      body.#content = new Content({ ...content, source: kept });
      body.#stream = undefined;
      return new Content({ ...content, source: shared });
    };
  }
}

function withoutMark(text) {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

function bytesOfContent(content) {
  if (content === undefined) return new Uint8Array(0);
  content.bytes ??= utf8.encode(content.text);
  return content.bytes;
}

/** The body of a message from the gateway. */
function contentOf({ text, base64 }) {
  return new Content(text === undefined ? { bytes: fromBase64(base64) } : { text });
}

exports.Body = Body;
exports.extract = extract;
exports.gather = gather;
exports.bytesOfContent = bytesOfContent;
exports.contentOf = contentOf;
