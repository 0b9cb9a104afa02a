/**
 * Which headers pass a proxy, either way: in the order and the case they came in, repeated ones
 * included. Pure. Nothing that frames a message, belongs to one connection, or is ours alone passes.
 * Flat name, value lists, as node:http gives and takes them.
 */
import { isPlainText } from '../../shared/http/header-values.ts';
import { namesProxyKey } from './read-request.ts';
import { runtimeProblem } from './transform-failure.ts';

/** RFC 9110 section 7.6.1, with the older ones that servers still send. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-authentication-info',
  'te',
  'trailer',
  'trailers',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** The host is the destination's, the length that of what is sent, and nobody waits for a 100. */
const REQUEST_ONLY = new Set(['host', 'content-length', 'expect']);

const OURS = 'bt-';
/** What a caller says to proxies is for us; of an answer, `Proxy-Status` is for the caller (RFC 9209). */
const FOR_PROXIES = 'proxy-';
/** Facts 10.2: others are dropped. */
const FORWARDED_NAME = /^[A-Za-z0-9_-]+$/;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** What is decoded here for a transform. */
export const DECODABLE = 'gzip, deflate, br';

export interface RequestHeaderOptions {
  readonly traceId: string;
  /** In place of what codings the caller takes; absent: as the caller says. */
  readonly accept: string | undefined;
}

/** What of a caller's headers goes to the destination. `Via`, `Forwarded` and the like are untouched. */
export function forwardedHeaders(raw: readonly string[]): string[] {
  const dropped = namedByConnection(raw);
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] as string;
    const { lower, isForwarded } = passageOf(name);
    if (!isForwarded || !FORWARDED_NAME.test(name) || dropped?.has(lower)) continue;
    const value = raw[index + 1] as string;
    // A page that was loaded with `?bt-proxy-key=…` names it in each request that it makes.
    if (lower === 'referer' && namesProxyKey(value)) continue;
    kept.push(name, value);
  }
  return kept;
}

/**
 * The headers that a transform wants sent, without those that must not be set. Throws the transform's 500 for
 * names and values that no caller could send either; what comes from one was checked when it came.
 */
export function settableHeaders(headers: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] as string;
    const value = headers[index + 1] as string;
    if (!TOKEN.test(name) || !isPlainText(value)) throw invalidHeader();
    if (passageOf(name).isForwarded) kept.push(name, value);
  }
  return kept;
}

/** The headers of the request as it is sent, of those that go on. */
export function sentHeaders(headers: readonly string[], options: RequestHeaderOptions): string[] {
  const { traceId, accept } = options;
  if (accept === undefined) return [...headers, 'BT-TRACE-ID', traceId];
  const sent = withoutHeader(headers, 'accept-encoding');
  sent.push('Accept-Encoding', accept, 'BT-TRACE-ID', traceId);
  return sent;
}

/** Whether a header passes, by its name alone. */
interface Passage {
  readonly lower: string;
  readonly isForwarded: boolean;
  readonly isReturned: boolean;
}

/** By the name as it is spelled: the same few come again and again. */
const passages = new Map<string, Passage>();
/** Names that nobody sends twice must not fill the memory. */
const PASSAGES_MAX = 500;
const REMEMBERED_LENGTH_MAX = 64;

function passageOf(name: string): Passage {
  const known = passages.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  const isReturned = passesConnections(lower);
  // Servers that hand headers to programs as variables cannot tell `_` from `-` any more.
  const read = lower.replaceAll('_', '-');
  const isOfRequestAlone = REQUEST_ONLY.has(read) || read.startsWith(FOR_PROXIES);
  const isForwarded = isReturned && passesConnections(read) && !isOfRequestAlone;
  const passage = { lower, isForwarded, isReturned };
  if (passages.size >= PASSAGES_MAX) passages.clear();
  if (name.length <= REMEMBERED_LENGTH_MAX) passages.set(name, passage);
  return passage;
}

/** Given in lower case. */
function passesConnections(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !name.startsWith(OURS);
}

function invalidHeader(): Error {
  return runtimeProblem('The transform returned an invalid header.');
}

/** What of a destination's headers goes to the caller; the length only when it is still true. */
export function returnedHeaders(raw: readonly string[], keepsLength: boolean): string[] {
  const dropped = namedByConnection(raw);
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] as string;
    const { lower, isReturned } = passageOf(name);
    if (!isReturned || dropped?.has(lower)) continue;
    if (!keepsLength && lower === 'content-length') continue;
    kept.push(name, raw[index + 1] as string);
  }
  return kept;
}

/**
 * What we add to an answer of the destination: the trace id, and, as far as it says nothing about them
 * itself, that any origin may read it and that nobody shall keep it.
 */
export function addedHeaders(returned: readonly string[], traceId: string): string[] {
  const added = ['bt-trace-id', traceId];
  if (firstHeader(returned, 'cache-control') === undefined) added.push('cache-control', 'no-store');
  if (firstHeader(returned, 'access-control-allow-origin') === undefined) {
    added.push('access-control-allow-origin', '*');
  }
  // Lists of several headers are one list (RFC 9110 section 5.3).
  added.push('access-control-expose-headers', 'bt-trace-id, bt-proxy-destination-status');
  return added;
}

/** The first value of a header; `name` in lower case. */
export function firstHeader(headers: readonly string[], name: string): string | undefined {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const one = headers[index] as string;
    if (one.length === name.length && one.toLowerCase() === name) return headers[index + 1];
  }
  return undefined;
}

/** The flat list without the headers of that name, given in lower case. */
export function withoutHeader(flat: readonly string[], name: string): string[] {
  return flat.filter((_, index) => flat[index - (index % 2)]?.toLowerCase() !== name);
}

/** Names that `Connection` declares to be for one connection only. */
function namedByConnection(raw: readonly string[]): Set<string> | undefined {
  let named: Set<string> | undefined;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] as string;
    if (name.length !== 'connection'.length || name.toLowerCase() !== 'connection') continue;
    for (const option of (raw[index + 1] as string).split(',')) {
      const lower = option.trim().toLowerCase();
      // A destination must not make us forget how long its answer is.
      if (lower === '' || lower === 'keep-alive' || lower === 'content-length') continue;
      named ??= new Set();
      named.add(lower);
    }
  }
  return named;
}
