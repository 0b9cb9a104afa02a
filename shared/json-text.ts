/**
 * JSON text in and out. A value that comes in is kept exactly or refused: nothing is rounded,
 * dropped or replaced silently, and no error repeats a byte of the text.
 */
import { ApiError } from './errors.ts';
import { JSON_DEPTH_MAX, scanJson } from './json-scan.ts';

declare global {
  interface JSON {
    /** ECMAScript "JSON.parse source text access"; in Node 24, not yet in the compiler's library. */
    rawJSON(text: string): unknown;
  }
}

const BYTE_ORDER_MARK = 0xfeff;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** In JSON text, a zero that stands as a value; inside strings it is a harmless false alarm. */
const ZERO_VALUE = /(?:^|[:,[])0(?:$|[,}\]])/;

/**
 * The value of a request body (RFC 8259, UTF-8 without byte order mark).
 *
 * Throws `bad_request` for invalid UTF-8, bad syntax, more than `depthMax` containers inside each
 * other, more than 10,000 members, a member name given twice in one object, a lone surrogate, and a
 * number that a double cannot hold exactly. Depth and members are refused before JSON.parse runs.
 * Members named `__proto__` are own properties of the result; `-0` stays `-0`.
 */
export function parseJson(bytes: Buffer, depthMax: number = JSON_DEPTH_MAX): unknown {
  const text = decodeText(bytes);
  const members = scanJson(bytes, depthMax);
  const value: unknown = JSON.parse(text);
  // JSON.parse keeps the last of two equal names, so a missing member is a duplicate. Counting
  // needs no set of names and sees through spellings such as "a" and "\u0061".
  if (members > 1 && countMembers(value) !== members) {
    throw new ApiError('bad_request', 'Invalid JSON: a member name appears twice in one object');
  }
  return value;
}

function decodeText(bytes: Uint8Array): string {
  let text: string;
  try {
    text = strictUtf8.decode(bytes);
  } catch {
    // Not kept as cause: nothing of the body may reach a log.
    throw new ApiError('bad_request', 'Invalid JSON: the body is not valid UTF-8');
  }
  if (text.charCodeAt(0) === BYTE_ORDER_MARK) {
    throw new ApiError('bad_request', 'Invalid JSON: a byte order mark is not allowed');
  }
  return text;
}

/** Members of all objects inside a value. Recursion is bounded by the depth the scan allowed. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item);
    return count;
  }
  for (const item of Object.values(value)) count += 1 + countMembers(item);
  return count;
}

/**
 * Compact JSON of a JSON value, as `parseJson` reads it back: `-0` is printed, own `__proto__`
 * members are kept. Throws a TypeError for what JSON cannot say (undefined, NaN, Infinity).
 */
export function stringifyJson(value: unknown): string {
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) throw new TypeError('Not a JSON value');
  // JSON.stringify prints -0 as 0 and Infinity as null; only a text that shows one of these is
  // printed again the slow way.
  if (!ZERO_VALUE.test(text) && !text.includes('null')) return text;
  return JSON.stringify(value, exactNumber);
}

function exactNumber(_name: string, value: unknown): unknown {
  if (typeof value !== 'number') return value;
  if (!Number.isFinite(value)) throw new TypeError('Not a JSON number');
  return Object.is(value, -0) ? JSON.rawJSON('-0') : value;
}
