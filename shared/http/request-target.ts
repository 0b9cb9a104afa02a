/**
 * Reads the target of a request line: origin form only, one pass, no URL object, no decoding.
 * It must never let two spellings of a path reach routing as different resources, nor a character
 * that a log, a cache or another server would read differently.
 */
import { ApiError } from '../errors.ts';
import { doubt, mistake, type Refusal } from './refusal.ts';

/** Twice the longest documented target (a list of 100 UUIDs); half of the header budget. */
export const TARGET_LENGTH_MAX = 8192;
/** Far above any list of this API; bounds what splitting a query may allocate. */
export const QUERY_PARAMETERS_MAX = 1000;

export interface Target {
  /** Still percent-encoded, begins with `/`, no trailing slash except for the root itself. */
  path: string;
  /** The raw text after the first `?`, empty without one. */
  query: string;
}

const TOO_LONG: Refusal = {
  code: 'uri_too_long',
  detail: 'The request target is longer than 8,192 bytes',
  close: true,
};
const NOT_ORIGIN_FORM = doubt('The request target must be a path that begins with /');
const BAD_CHARACTER = doubt('The request target contains a character that must be percent-encoded');
const BAD_ESCAPE = doubt('The path contains an invalid percent-encoding');
const HIDDEN_SEPARATOR = doubt('The path contains a percent-encoded NUL, slash or backslash');
const DOT_SEGMENT = doubt('The path contains a . or .. segment');
const TOO_MANY_PARAMETERS = mistake('bad_request', 'The query has more than 1,000 parameters');
const EMPTY_SEGMENT = mistake('not_found', 'The path contains an empty segment');

const SLASH = 0x2f;
const BACKSLASH = 0x5c;
const QUESTION_MARK = 0x3f;
const PERCENT = 0x25;
const HASH = 0x23;
const AMPERSAND = 0x26;
const DOT = 0x2e;
const SPACE = 0x20;
const DELETE = 0x7f;
/** Any value above 2: the segment is more than dots. */
const NOT_ONLY_DOTS = 16_384;

/**
 * Checks `url` and writes its path and raw query into `into`; a `Refusal` when it is not acceptable
 * (414 over 8 KiB, 404 for `//`, else 400). The trailing slash is dropped: same path (design 12).
 */
export function readTarget(url: string, into: Target): Refusal | undefined {
  if (url.length > TARGET_LENGTH_MAX) return TOO_LONG;
  if (url.charCodeAt(0) !== SLASH) return NOT_ORIGIN_FORM;
  const pathEnd = scanPath(url);
  if (typeof pathEnd !== 'number') return pathEnd;
  const refusal = scanQuery(url, pathEnd + 1);
  if (refusal !== undefined) return refusal;
  const trimmed = pathEnd > 1 && url.charCodeAt(pathEnd - 1) === SLASH ? pathEnd - 1 : pathEnd;
  into.path = trimmed === url.length ? url : url.slice(0, trimmed);
  if (pathEnd < url.length) into.query = url.slice(pathEnd + 1);
  return undefined;
}

/** Index of the `?` or the end of the text. */
function scanPath(url: string): number | Refusal {
  let dots = 0;
  let index = 1;
  for (; index < url.length; index++) {
    let code = url.charCodeAt(index);
    if (code === QUESTION_MARK) break;
    if (code === SLASH) {
      if (dots === 0) return EMPTY_SEGMENT;
      if (dots <= 2) return DOT_SEGMENT;
      dots = 0;
      continue;
    }
    if (code <= SPACE || code >= DELETE || code === BACKSLASH || code === HASH) {
      return BAD_CHARACTER;
    }
    if (code === PERCENT) {
      code = escapedByte(url, index);
      if (code < 0) return BAD_ESCAPE;
      if (code === 0 || code === SLASH || code === BACKSLASH) return HIDDEN_SEPARATOR;
      index += 2;
    }
    dots = code === DOT ? dots + 1 : NOT_ONLY_DOTS;
  }
  return dots === 1 || dots === 2 ? DOT_SEGMENT : index;
}

/** Only characters and count; the encoding is checked where a query is parsed, not where passed on. */
function scanQuery(url: string, start: number): Refusal | undefined {
  let parameters = 1;
  for (let index = start; index < url.length; index++) {
    const code = url.charCodeAt(index);
    if (code <= SPACE || code >= DELETE || code === HASH) return BAD_CHARACTER;
    if (code === AMPERSAND) parameters++;
  }
  return parameters > QUERY_PARAMETERS_MAX ? TOO_MANY_PARAMETERS : undefined;
}

/** The byte that `%xx` at `index` stands for, -1 when it is not two hexadecimal digits. */
function escapedByte(text: string, index: number): number {
  const high = hexDigit(text.charCodeAt(index + 1));
  const low = hexDigit(text.charCodeAt(index + 2));
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/**
 * Decodes one path segment, once. Double encoding therefore leaves a `%`, which no id may hold.
 * Throws 400 when the bytes are not UTF-8 (RFC 3986 section 2.1, RFC 3629).
 */
export function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ApiError('bad_request', 'The path is not valid percent-encoded UTF-8');
  }
}
