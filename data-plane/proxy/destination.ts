/**
 * Where a proxied request goes: the base of the destination, the path behind `/proxy`, both queries.
 * Pure. It must never make a path that the destination could read as one outside of its base.
 */
import { ApiError } from '../../shared/errors.ts';

export interface Destination {
  /** Scheme, host and port. */
  readonly origin: string;
  /** As in a Host header. */
  readonly host: string;
  /** Without trailing slashes; empty for the root. */
  readonly basePath: string;
  /** Raw text with its `?`, or empty. */
  readonly query: string;
}

/** Caller's part of a request's path and query, still percent-encoded. */
export interface Suffix {
  /** Behind `/proxy`: empty, or begins with a slash. */
  readonly path: string;
  /** With its `?`, or empty. */
  readonly query: string;
}

/** Of the target on the wire: what the request line of common servers takes. */
const TARGET_LENGTH_MAX = 12_288;

/** Times that a destination might undo percent-encoding before it looks for dots. */
const DECODINGS_MAX = 8;

/** One or two dots, with what some readers trim or cut off behind them. */
const CLIMBING = /^[\s\0]*\.{1,2}[\s\0]*(?:[;?#\0].*)?$/s;

/** `.`, `/` and `\` in two, three or four bytes, which old decoders take, also with wrong tails. */
const OVERLONG = /(?:%c[01]|%e0%8[01]|%f0%80%8[01])%(ae|af|9c|2e|2f|1c)/gi;
const OVERLONG_BYTES: Record<string, string> = {
  ...{ ae: '.', af: '/', '9c': '\\', '2e': '.', '2f': '/', '1c': '\\' },
};

/** Reads a stored destination URL, which was checked when it was saved. */
export function readDestination(text: string): Destination {
  const { origin, host, pathname, search } = new URL(text);
  return { origin, host, basePath: pathname.replace(/\/+$/, ''), query: search };
}

/** The request target at the destination. Throws 400 when the caller's part would leave its base. */
export function targetAt(destination: Destination, { path, query }: Suffix): string {
  if (!isWithinBase(path)) {
    throw new ApiError('bad_request', 'The path leads out of the base of the destination');
  }
  if (!isPlainQuery(query)) {
    throw new ApiError('bad_request', 'The query contains a character that must be encoded');
  }
  const joined = destination.basePath + path || '/';
  const target = joined + mergeQueries(destination.query, query);
  if (target.length > TARGET_LENGTH_MAX) {
    throw new ApiError('uri_too_long', 'Path and query are longer than 12,288 bytes');
  }
  return target;
}

/** The destination's own parameters first; `?` alone is no query. */
export function mergeQueries(own: string, callers: string): string {
  if (callers.length <= 1) return own;
  return own.length <= 1 ? callers : `${own}&${callers.slice(1)}`;
}

function isPlainQuery(query: string): boolean {
  return query === '' || /^\?[!-"$-~]*$/.test(query);
}

/**
 * Whether no reader of the path could climb out: none who decodes it again and again, takes backslashes
 * for slashes, drops empty segments, or cuts `;parameters` off segments.
 */
export function isWithinBase(path: string): boolean {
  if (path === '') return true;
  // Visible ASCII without what ends a path, or what the URL parser would make a slash of.
  if (!/^\/[!-"$->@-[\]-~]*$/.test(path)) return false;
  let decoded = path;
  for (let times = 0; times <= DECODINGS_MAX; times += 1) {
    if (hasClimbingSegment(decoded)) return false;
    const next = decodeOnce(decoded);
    if (next === decoded) return true;
    decoded = next;
  }
  // Nobody encodes so often for a good reason.
  return false;
}

/** What the URL standard drops wherever it stands: between two dots, too. */
const DROPPED = /[\t\n\r]/g;

/** An empty segment counts: `//host/` is an address without its scheme. */
function hasClimbingSegment(decoded: string): boolean {
  const path = decoded.replace(DROPPED, '');
  const segments = path.split(/[/\\]/);
  return segments.some((segment) => CLIMBING.test(segment)) || /[/\\]{2}/.test(path);
}

/** Undoes one percent-encoding, byte by byte: also overlong forms and what is not UTF-8. */
function decodeOnce(path: string): string {
  return path
    .replace(OVERLONG, (_, byte: string) => OVERLONG_BYTES[byte.toLowerCase()] ?? '')
    .replace(/%u00([0-9a-f]{2})|%([0-9a-f]{2})/gi, (_, wide?: string, byte?: string) =>
      String.fromCharCode(Number.parseInt(wide ?? byte ?? '0', 16)),
    );
}
