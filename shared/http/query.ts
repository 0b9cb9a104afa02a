/**
 * The parameters of a query string, strictly decoded and bounded. Nothing is merged or dropped
 * here: which of several values counts is the decision of whoever reads them.
 */
import { ApiError } from '../errors.ts';
import { QUERY_PARAMETERS_MAX, TARGET_LENGTH_MAX } from './request-target.ts';

export class QueryParams {
  /** Decoded names and values in the order sent, pairwise by index. */
  readonly names: readonly string[];
  readonly values: readonly string[];

  constructor(names: readonly string[], values: readonly string[]) {
    this.names = names;
    this.values = values;
  }

  /** The first value of `name`. */
  get(name: string): string | undefined {
    const index = this.names.indexOf(name);
    return index < 0 ? undefined : this.values[index];
  }

  /** Every value of `name`, in the order sent. */
  all(name: string): string[] {
    return this.values.filter((_, index) => this.names[index] === name);
  }

  has(name: string): boolean {
    return this.names.includes(name);
  }
}

const NONE = new QueryParams([], []);

/**
 * Parses the raw text after `?` (application/x-www-form-urlencoded: `+` is a space). Empty parts
 * between `&` are skipped, a part without `=` has an empty value. Throws 400 for bad escapes, bytes
 * that are not UTF-8, NUL (Postgres text cannot hold it) or over 1,000 parameters, 414 over 8 KiB.
 */
export function parseQuery(raw: string): QueryParams {
  if (raw === '') return NONE;
  if (raw.length > TARGET_LENGTH_MAX) {
    throw new ApiError('uri_too_long', 'The query is longer than 8,192 bytes');
  }
  const names: string[] = [];
  const values: string[] = [];
  for (let start = 0; start <= raw.length; ) {
    const ampersand = raw.indexOf('&', start);
    const end = ampersand < 0 ? raw.length : ampersand;
    if (end > start) {
      if (names.length === QUERY_PARAMETERS_MAX) {
        throw new ApiError('bad_request', 'The query has more than 1,000 parameters');
      }
      const equals = raw.indexOf('=', start);
      const nameEnd = equals < 0 || equals > end ? end : equals;
      names.push(decode(raw.slice(start, nameEnd)));
      values.push(decode(raw.slice(Math.min(nameEnd + 1, end), end)));
    }
    start = end + 1;
  }
  return new QueryParams(names, values);
}

function decode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return refuseNul(spaced);
  try {
    return refuseNul(decodeURIComponent(spaced));
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    throw new ApiError('bad_request', 'The query is not valid percent-encoded UTF-8');
  }
}

function refuseNul(text: string): string {
  if (text.includes('\0')) {
    throw new ApiError('bad_request', 'The query contains a NUL character');
  }
  return text;
}
