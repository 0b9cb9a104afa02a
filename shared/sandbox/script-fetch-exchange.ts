/** One fetch of a script on the wire: request, redirects, response, within its time and size. */
import { STATUS_CODES } from 'node:http';
import type { Agent, Dispatcher } from 'undici';
import { bodyMember, collect, collectDecoded, type Room } from './script-fetch-body.ts';
import { fetchError } from './script-fetch-failure.ts';
import { nextRequest, REDIRECTS_MAX } from './script-fetch-redirect.ts';
import type { FetchRequest } from './script-fetch-request.ts';

export interface ExchangeLimits {
  /** From the beginning of a request (name, connection, TLS) to the end of its response's head. */
  readonly headersMs: number;
  /** Bytes of a response's body, before and after decoding. */
  readonly responseBytesMax: number;
}

/** What goes with every request that does not say otherwise. */
const DEFAULT_HEADERS = [['user-agent', 'sallyport']] as const;
/** And with one whose body is to be decoded: who asks for raw bytes says what they may be. */
const DECODED_HEADERS = [
  ['accept', '*/*'],
  ['accept-encoding', 'gzip, deflate, br'],
] as const;

/** Rejects when the request must not be sent. */
export type BeforeSend = () => Promise<unknown>;

export interface FetchCall {
  /** Ends it. */
  readonly controller: AbortController;
  readonly beforeSend: BeforeSend;
}

/** The response as JSON text, after at most REDIRECTS_MAX redirects. */
export async function exchange(
  agent: Agent,
  first: FetchRequest,
  limits: ExchangeLimits,
  room: Room,
  { controller, beforeSend }: FetchCall,
): Promise<string> {
  let request = first;
  for (let redirects = 0; ; redirects += 1) {
    await beforeSend();
    const response = await send(agent, request, limits.headersMs, controller);
    const headers = pairsOf(response.headers);
    try {
      const next = nextRequest(request, response.statusCode, headerOf(headers, 'location'));
      if (next === undefined) {
        const bytes = await readBody(response, request, headers, limits, room);
        return answerText(request, response, headers, bytes, redirects > 0);
      }
      if (redirects === REDIRECTS_MAX) throw fetchError('too_many_redirects');
      request = next;
    } finally {
      // Ends what is not read to its end, with its connection.
      response.body.on('error', () => undefined).destroy();
    }
  }
}

async function send(
  agent: Agent,
  { url, method, headers, body, decode }: FetchRequest,
  headersMs: number,
  call: AbortController,
): Promise<Dispatcher.ResponseData> {
  const timer = setTimeout(() => call.abort(fetchError('headers_timeout')), headersMs);
  try {
    return await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: method as Dispatcher.HttpMethod,
      headers: withDefaults(headers, decode),
      body: body ?? null,
      signal: call.signal,
      responseHeaders: 'raw',
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Names and values in turn, as undici writes them out unchanged. */
function withDefaults(headers: FetchRequest['headers'], isDecoded: boolean): string[] {
  const given = new Set(headers.map(([name]) => name.toLowerCase()));
  const defaults = isDecoded ? [...DEFAULT_HEADERS, ...DECODED_HEADERS] : DEFAULT_HEADERS;
  return [...headers, ...defaults.filter(([name]) => !given.has(name))].flat();
}

async function readBody(
  response: Dispatcher.ResponseData,
  request: FetchRequest,
  headers: readonly [string, string][],
  { responseBytesMax }: ExchangeLimits,
  room: Room,
): Promise<Buffer> {
  // A length that is announced too large is not worth reading up to the limit.
  const announced = Number(headerOf(headers, 'content-length'));
  if (request.method !== 'HEAD' && announced > responseBytesMax) {
    throw fetchError('response_too_large');
  }
  if (!request.decode) return collect(response.body, responseBytesMax, room);
  const coding = headerOf(headers, 'content-encoding');
  return collectDecoded(response.body, coding, responseBytesMax, room);
}

function answerText(
  { url }: FetchRequest,
  { statusCode, statusText }: Dispatcher.ResponseData,
  headers: readonly [string, string][],
  bytes: Buffer,
  redirected: boolean,
): string {
  const head = JSON.stringify({
    url: url.href,
    redirected,
    status: statusCode,
    status_text: statusText || (STATUS_CODES[statusCode] ?? ''),
    headers,
  });
  return `${head.slice(0, -1)},${bodyMember(bytes)}}`;
}

/** undici's type does not know that raw headers are a flat list. */
function pairsOf(headers: unknown): [string, string][] {
  const flat = Array.isArray(headers) ? headers.map(String) : [];
  return flat.flatMap((name, index): [string, string][] =>
    index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [],
  );
}

/** The first value of a header; `name` in lower case. */
function headerOf(headers: readonly [string, string][], name: string): string | undefined {
  return headers.find(([one]) => one.toLowerCase() === name)?.[1];
}
