/**
 * Headers as a transform sees them, an object with names in their original casing, and those that it
 * returned. What frames a message, names its destination or speaks to Sallyport is not a transform's
 * to say: such headers are left out, whatever their values.
 */
import { runtimeProblem } from './transform-failure.ts';

/** RFC 9110 sections 5.1 and 5.5: a token; no control characters, one byte each. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const ENDS_WITH_SPACE = /^[\t ]|[\t ]$/;

/** The connection's and the framing's (RFC 9110 section 7.6.1, RFC 9112); `host` is the destination's. */
const NOT_THEIRS = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'trailer', 'te', 'connection', 'keep-alive'],
  ...['proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'upgrade', 'expect'],
]);
const OURS_PREFIX = 'bt-';

/** Cannot be joined to one line (RFC 6265 section 3), so it is a list, for transforms too. */
const SET_COOKIE = 'set-cookie';
/** Of all names and values together: four times what common servers take. */
const LENGTH_MAX = 64 * 1024;

/** JSON text of the headers in a flat list; those of one name are joined, under its first casing. */
export function headersText(flat: readonly string[]): string {
  const names = new Map<string, string>();
  // Without a prototype a header named `__proto__` is just that.
  const headers: Record<string, string | string[]> = Object.create(null);
  for (let index = 0; index + 1 < flat.length; index += 2) {
    const name = flat[index] ?? '';
    const value = flat[index + 1] ?? '';
    const lower = name.toLowerCase();
    const first = names.get(lower) ?? name;
    names.set(lower, first);
    headers[first] = joined(lower, headers[first], value);
  }
  return JSON.stringify(headers);
}

function joined(
  lower: string,
  known: string | string[] | undefined,
  value: string,
): string | string[] {
  if (lower === SET_COOKIE) return [...(known ?? []), value];
  if (known === undefined) return value;
  return `${known}${lower === 'cookie' ? '; ' : ', '}${value}`;
}

/**
 * A flat list of the headers that a transform returned. Of names that differ in case alone the last
 * one counts: code that adds `content-type` to a copy means to replace `Content-Type`. Null is no
 * header. Throws the 500 "invalid header" for what no header can be.
 */
export function readHeaders(returned: unknown): string[] {
  if (typeof returned !== 'object' || returned === null || Array.isArray(returned)) {
    throw invalidHeader();
  }
  const lines = new Map<string, string[]>();
  let length = 0;
  for (const [name, value] of Object.entries(returned)) {
    if (!NAME.test(name)) throw invalidHeader();
    const lower = name.toLowerCase();
    if (NOT_THEIRS.has(lower) || lower.startsWith(OURS_PREFIX) || value === null) continue;
    const values = Array.isArray(value) && lower === SET_COOKIE ? value : [value];
    const flat = values.flatMap((item) => [name, headerValue(item)]);
    length += flat.join('').length;
    if (length > LENGTH_MAX) throw runtimeProblem('The headers of the transform are too large.');
    lines.set(lower, flat);
  }
  return [...lines.values()].flat();
}

function headerValue(value: unknown): string {
  const isScalar = ['string', 'number', 'boolean'].includes(typeof value);
  const text = isScalar ? String(value) : undefined;
  if (text === undefined || !VALUE.test(text)) throw invalidHeader();
  return ENDS_WITH_SPACE.test(text) ? text.trim() : text;
}

function invalidHeader(): Error {
  return runtimeProblem('The transform returned an invalid header.');
}

/** The last value of a header in a flat list; `name` in lower case. */
export function lastHeader(flat: readonly string[], name: string): string | undefined {
  for (let index = flat.length - 2; index >= 0; index -= 2) {
    if (flat[index]?.toLowerCase() === name) return flat[index + 1];
  }
  return undefined;
}
