/**
 * Rules on request line, framing and header fields before anything else looks at a request
 * (design section 9). Pure: the parser's output goes in, an accepted view or a refusal comes out.
 * It must never guess: where two readers could disagree, the answer is 400 and the connection ends.
 */
import { isHost, isPlainText, namesProtectedHeader, parseLength } from './header-values.ts';
import { isServedMethod } from './methods.ts';
import { doubt, mistake, type Refusal } from './refusal.ts';
import { readTarget } from './request-target.ts';
import { acceptTraceId } from './trace-id.ts';

/** Real clients send about 15; bounds the work per request below the 16 KiB of the parser. */
export const HEADERS_MAX = 100;

/** What routing and routes need of the request head; collected in one pass over the headers. */
export interface AcceptedRequest {
  readonly ok: true;
  method: string;
  /** Percent-encoded, without trailing slash; `decodeSegment` decodes one segment of it. */
  path: string;
  /** Raw query text without `?`. */
  query: string;
  traceId: string;
  host: string;
  apiKey: string | undefined;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** Bytes announced by `Content-Length`; undefined when the body is chunked or absent. */
  contentLength: number | undefined;
  /** `Transfer-Encoding: chunked`: a body of unknown length follows. */
  chunked: boolean;
  idempotencyKey: string | undefined;
  transactionId: string | undefined;
  /** The client waits: after authentication call `res.writeContinue()` before reading the body. */
  expectsContinue: boolean;
}

export interface RefusedRequest extends Refusal {
  readonly ok: false;
  readonly traceId: string;
}

const BAD_VERSION = doubt('Only HTTP/1.1 and HTTP/1.0 are served');
const BAD_HOST = doubt('The Host header must be one host name with an optional port');
const BAD_HEADER_VALUE = doubt('A header contains characters other than visible ASCII');
const BAD_KEY = doubt('The BT-API-KEY header contains characters other than visible ASCII');
const BAD_CONNECTION = doubt('The Connection header names a header that must not be removed');
const BAD_ENCODING = doubt('The only Transfer-Encoding served is chunked, once');
const BAD_LENGTH = doubt('The Content-Length header is not one decimal number');
const TWO_FRAMINGS = doubt('Content-Length and Transfer-Encoding exclude each other');
const NO_UPGRADE = doubt('Protocol upgrades are not served');
const TWICE = doubt('A header that may be sent only once was sent twice');
const TOO_MANY: Refusal = {
  code: 'headers_too_large',
  detail: 'The request has more than 100 headers',
  close: true,
};
const BAD_EXPECTATION: Refusal = {
  code: 'expectation_failed',
  detail: 'The only expectation served is 100-continue',
  close: true,
};
const BAD_METHOD = mistake('method_not_allowed', 'This method is not served');

/**
 * Checks one request head. `rawHeaders` is the flat name, value, name, value list of node:http,
 * `url` its request target as sent. Never throws. `X-HTTP-Method-Override`, keys in a query or in
 * `Authorization`, and every header not named in {@link AcceptedRequest} have no meaning here.
 */
export function checkRequest(
  method: string,
  url: string,
  httpVersion: string,
  rawHeaders: readonly string[],
  headersMax: number = HEADERS_MAX,
): AcceptedRequest | RefusedRequest {
  const head = new RequestHead(method);
  const refusal =
    head.readHeaders(rawHeaders, headersMax) ??
    head.checkFraming(httpVersion) ??
    readTarget(url, head) ??
    (isServedMethod(method) ? undefined : BAD_METHOD);
  head.traceId = acceptTraceId(head.callersTraceId);
  if (refusal === undefined) return head;
  return { ok: false, traceId: head.traceId, ...refusal };
}

class RequestHead implements AcceptedRequest {
  readonly ok = true;
  method: string;
  path = '';
  query = '';
  traceId = '';
  host = '';
  apiKey: string | undefined = undefined;
  contentType: string | undefined = undefined;
  contentEncoding: string | undefined = undefined;
  contentLength: number | undefined = undefined;
  chunked = false;
  idempotencyKey: string | undefined = undefined;
  transactionId: string | undefined = undefined;
  expectsContinue = false;
  callersTraceId: string | undefined = undefined;

  constructor(method: string) {
    this.method = method;
  }

  readHeaders(rawHeaders: readonly string[], headersMax: number): Refusal | undefined {
    if (rawHeaders.length > headersMax * 2) return TOO_MANY;
    let refusal: Refusal | undefined;
    for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
      const value = rawHeaders[index + 1] as string;
      const name = (rawHeaders[index] as string).toLowerCase();
      // The first refusal stands; the rest is read only so that the answer has the trace id.
      const found = isPlainText(value) ? this.#readHeader(name, value) : badValue(name);
      refusal ??= found;
    }
    return refusal;
  }

  checkFraming(httpVersion: string): Refusal | undefined {
    if (httpVersion !== '1.1' && httpVersion !== '1.0') return BAD_VERSION;
    if (this.host === '') return BAD_HOST;
    if (this.chunked && this.contentLength !== undefined) return TWO_FRAMINGS;
    if (httpVersion === '1.0') {
      // A 1.0 recipient in between does not know chunks, nor 100 (RFC 9110 section 10.1.1).
      if (this.chunked) return BAD_ENCODING;
      this.expectsContinue = false;
    }
    return undefined;
  }

  #readHeader(name: string, value: string): Refusal | undefined {
    switch (name) {
      case 'host':
        if (this.host !== '' || !isHost(value)) return BAD_HOST;
        this.host = value;
        return undefined;
      case 'connection':
        return namesProtectedHeader(value) ? BAD_CONNECTION : undefined;
      case 'content-length':
        return this.#readLength(value);
      case 'transfer-encoding':
        if (this.chunked || value !== 'chunked') return BAD_ENCODING;
        this.chunked = true;
        return undefined;
      case 'expect':
        if (this.expectsContinue) return TWICE;
        if (value.toLowerCase() !== '100-continue') return BAD_EXPECTATION;
        this.expectsContinue = true;
        return undefined;
      case 'upgrade':
        return NO_UPGRADE;
      default:
        return this.#readSingle(name, value);
    }
  }

  #readLength(value: string): Refusal | undefined {
    if (this.contentLength !== undefined) return BAD_LENGTH;
    const length = parseLength(value);
    if (length < 0) return BAD_LENGTH;
    this.contentLength = length;
    return undefined;
  }

  /** Headers that mean something once. A second one is refused: which would win is a guess. */
  #readSingle(name: string, value: string): Refusal | undefined {
    switch (name) {
      case 'bt-api-key':
        if (this.apiKey !== undefined) return TWICE;
        this.apiKey = value;
        return undefined;
      case 'content-type':
        if (this.contentType !== undefined) return TWICE;
        this.contentType = value;
        return undefined;
      case 'bt-trace-id':
        if (this.callersTraceId !== undefined) return TWICE;
        this.callersTraceId = value;
        return undefined;
      case 'content-encoding':
        if (this.contentEncoding !== undefined) return TWICE;
        this.contentEncoding = value;
        return undefined;
      case 'bt-idempotency-key':
        if (this.idempotencyKey !== undefined) return TWICE;
        this.idempotencyKey = value;
        return undefined;
      case 'bt-transaction-id':
        if (this.transactionId !== undefined) return TWICE;
        this.transactionId = value;
        return undefined;
      default:
        return undefined;
    }
  }
}

/** A key with a letter that was not meant to be copied is the usual case. */
function badValue(name: string): Refusal {
  return name === 'bt-api-key' ? BAD_KEY : BAD_HEADER_VALUE;
}
