/**
 * What a request to `/proxy` asks for, read from its head: by which key or URL, behind which path, with
 * which of the reserved headers. Pure. Two answers to one question are refused: which counts is a guess.
 */
import { ApiError } from '../../shared/errors.ts';
import type { Suffix } from './destination.ts';

export interface ProxyRequest {
  readonly proxyKey: string | undefined;
  /** BT-PROXY-URL. */
  readonly url: string | undefined;
  /** The query without the key. */
  readonly suffix: Suffix;
  /** Headers of the connection that the caller wants the destination to see; absent mostly. */
  readonly reserved: ReservedHeaders | undefined;
}

export interface ReservedHeaders {
  /** Value of `Keep-Alive`. */
  readonly keepAlive: string | undefined;
  /** Value of `Connection`. */
  readonly connection: 'close' | 'keep-alive' | undefined;
}

export const PROXY_PATH = '/proxy';
const KEY_PARAMETER = 'bt-proxy-key';
const HEADERS = ['bt-proxy-key', 'bt-proxy-url', 'bt-proxy-keep-alive', 'bt-proxy-connection'];
/** `timeout=5`, `timeout=5, max=100`, in any order, each once (RFC 2068 section 19.7.1.1). */
const KEEP_ALIVE = /^(timeout|max)=\d{1,9}(?:\s*,\s*(?!\1)(?:timeout|max)=\d{1,9})?$/i;

/** Whether a path without its query, as the strict layer accepts it, is served by proxies. */
export function isProxyPath(path: string): boolean {
  if (!path.startsWith(PROXY_PATH)) return false;
  const next = path[PROXY_PATH.length];
  return next === undefined || next === '/' || next === '?';
}

/** `url` is the target as sent. Throws 400. */
export function readProxyRequest(url: string, rawHeaders: readonly string[]): ProxyRequest {
  const given = readHeaders(rawHeaders);
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const { query, keys } = takeKeys(mark < 0 ? '' : url.slice(mark + 1));
  const fromHeader = given.get('bt-proxy-key');
  const allKeys = new Set(fromHeader === undefined ? keys : [fromHeader, ...keys]);
  if (allKeys.size > 1) throw refused('The request names more than one proxy key');
  const suffix = path.slice(PROXY_PATH.length);
  return {
    proxyKey: [...allKeys][0],
    url: given.get('bt-proxy-url'),
    // Existing clients call the root as `/proxy/`.
    suffix: { path: suffix === '/' ? '' : suffix, query },
    reserved: readReserved(given),
  };
}

function readHeaders(rawHeaders: readonly string[]): Map<string, string> {
  const given = new Map<string, string>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    // Few headers have this many characters, so few are lower-cased.
    if (name.length < 12 || name.length > 19) continue;
    const lower = name.toLowerCase();
    if (!HEADERS.includes(lower)) continue;
    if (given.has(lower)) throw refused('A header that may be sent only once was sent twice');
    given.set(lower, rawHeaders[index + 1] as string);
  }
  return given;
}

/** Whether the query of a URL has the key of a proxy in it. */
export function namesProxyKey(url: string): boolean {
  const mark = url.indexOf('?');
  return mark >= 0 && takeKeys(url.slice(mark + 1)).keys.length > 0;
}

/** The query as it goes on, and the keys that were in it, in whatever spelling of the parameter. */
function takeKeys(raw: string): { query: string; keys: string[] } {
  if (raw === '') return { query: '', keys: [] };
  if (!/proxy|%/i.test(raw)) return { query: `?${raw}`, keys: [] };
  const keys: string[] = [];
  const kept = raw.split('&').filter((part) => {
    const equals = part.indexOf('=');
    const name = decode(equals < 0 ? part : part.slice(0, equals)).toLowerCase();
    if (name !== KEY_PARAMETER) return true;
    keys.push(equals < 0 ? '' : decode(part.slice(equals + 1)));
    return false;
  });
  const rest = kept.join('&');
  return { query: rest === '' ? '' : `?${rest}`, keys };
}

/** What is not valid percent-encoding stays as it is: it is the destination's to judge. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' ')).trim();
  } catch {
    return text;
  }
}

function readReserved(given: ReadonlyMap<string, string>): ReservedHeaders | undefined {
  const keepAlive = given.get('bt-proxy-keep-alive');
  const connection = given.get('bt-proxy-connection')?.toLowerCase();
  if (keepAlive === undefined && connection === undefined) return undefined;
  if (keepAlive !== undefined && !KEEP_ALIVE.test(keepAlive)) {
    throw refused('The BT-PROXY-KEEP-ALIVE header must be of the form timeout=N, max=N');
  }
  if (connection !== undefined && connection !== 'close' && connection !== 'keep-alive') {
    throw refused('The BT-PROXY-CONNECTION header must be close or keep-alive');
  }
  return { keepAlive, connection };
}

const refused = (detail: string): ApiError => new ApiError('bad_request', detail);
