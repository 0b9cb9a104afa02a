/**
 * The query parameters that lists share: page, size, repeated ids, metadata filters.
 * A filter that is not understood is an error, never ignored: it would widen the answer.
 */
import { type FieldErrors, fieldError, validationError } from '../errors.ts';
import { parseJson } from '../json-text.ts';
import type { QueryParams } from './query.ts';

/** Deeper pages cost the database more than they are worth (attacks row 45). */
const PAGE_MAX = 10_000;
export const SIZE_DEFAULT = 20;
/** Facts 1; logs and members have their own. */
const SIZE_MAX = 100;
/** More UUIDs than fit into a request target. */
const VALUES_MAX = 250;
/** Facts 5.3: the longest token id; every other id, type or status is shorter. */
const VALUE_LENGTH_MAX = 400;
/** Facts 5.4: a token has at most 50 metadata keys of 100 characters with values of 500. */
const METADATA_FILTERS_MAX = 50;
const METADATA_KEY_LENGTH_MAX = 100;
const METADATA_VALUE_LENGTH_MAX = 500;

export interface Paging {
  /** 1 to 10,000. */
  page: number;
  /** 0 to the largest size of that list; 0 asks for the totals only (design section 12). */
  size: number;
}

/**
 * Reads `page` (default 1) and `size` (default 20, at most `sizeMax`). Throws 400 with
 * `errors.page` and `errors.size` when one is repeated or no integer in its bounds (facts 1).
 */
export function readPaging(query: QueryParams, sizeMax = SIZE_MAX): Paging {
  const page = readInteger(query, 'page', 1, PAGE_MAX, 1);
  const size = readInteger(query, 'size', 0, sizeMax, Math.min(SIZE_DEFAULT, sizeMax));
  if (page !== undefined && size !== undefined) return { page, size };
  const errors: FieldErrors = {};
  if (page === undefined) errors.page = [`Must be one integer from 1 to ${PAGE_MAX}`];
  if (size === undefined) errors.size = [`Must be one integer from 0 to ${sizeMax}`];
  throw validationError(errors);
}

/** Undefined when the value is not acceptable. */
function readInteger(
  query: QueryParams,
  name: string,
  min: number,
  max: number,
  fallback: number,
): number | undefined {
  const values = query.all(name);
  if (values.length === 0) return fallback;
  const [text = ''] = values;
  // Nine digits: no bound here is larger, and parseInt stays exact.
  if (values.length > 1 || !/^[0-9]{1,9}$/.test(text)) return undefined;
  const value = Number.parseInt(text, 10);
  return value >= min && value <= max ? value : undefined;
}

/**
 * The distinct values of a repeatable parameter such as `id` or `type`, in the order asked for;
 * undefined when it is absent. Throws 400 when a value is empty or over 400 characters, above 250
 * distinct values, and for `name[]`, which some clients send and which would silently not filter.
 */
export function readValues(query: QueryParams, name: string): string[] | undefined {
  if (query.has(`${name}[]`)) {
    throw fieldError(name, `Repeat the parameter instead: ${name}=…&${name}=…`);
  }
  const values = query.all(name);
  if (values.length === 0) return undefined;
  const distinct = [...new Set(values)];
  if (distinct.length > VALUES_MAX) {
    throw fieldError(name, `At most ${VALUES_MAX} different values are accepted`);
  }
  if (distinct.some((value) => value === '' || value.length > VALUE_LENGTH_MAX)) {
    throw fieldError(name, `Each value must have 1 to ${VALUE_LENGTH_MAX} characters`);
  }
  return distinct;
}

/** `readValues(query, 'id')`. */
export function readIds(query: QueryParams): string[] | undefined {
  return readValues(query, 'id');
}

/**
 * Metadata filters in their three encodings: `metadata.<key>=v`, `metadata[<key>]=v` and
 * `metadata={"<key>":"v"}` (facts 5.7). The first of a repeated key wins; all must match. Keys are
 * taken literally: `metadata.a.b` is the key `a.b`. Throws 400 `errors.metadata`.
 */
export function readMetadataFilters(query: QueryParams): Map<string, string> {
  const filters = new Map<string, string>();
  query.names.forEach((name, index) => {
    if (!name.startsWith('metadata')) return;
    const value = query.values[index] ?? '';
    if (name === 'metadata') addFromJson(filters, value);
    else if (name[8] === '.') addFilter(filters, name.slice(9), value);
    else if (name[8] === '[') addBracketed(filters, name, value);
  });
  return filters;
}

function addBracketed(filters: Map<string, string>, name: string, value: string): void {
  if (!name.endsWith(']')) throw fieldError('metadata', 'The bracket around the key is not closed');
  addFilter(filters, name.slice(9, -1), value);
}

function addFromJson(filters: Map<string, string>, text: string): void {
  const parsed = parseFilterObject(text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw fieldError('metadata', 'Must be a JSON object of strings');
  }
  for (const [key, value] of Object.entries(parsed)) {
    if (typeof value !== 'string') throw fieldError('metadata', 'Must be a JSON object of strings');
    addFilter(filters, key, value);
  }
}

function parseFilterObject(text: string): unknown {
  try {
    return parseJson(Buffer.from(text));
  } catch {
    throw fieldError('metadata', 'Must be a JSON object of strings');
  }
}

function addFilter(filters: Map<string, string>, key: string, value: string): void {
  if (key === '' || key.length > METADATA_KEY_LENGTH_MAX) {
    throw fieldError('metadata', `A key must have 1 to ${METADATA_KEY_LENGTH_MAX} characters`);
  }
  if (key.includes('\0') || value.includes('\0')) {
    throw fieldError('metadata', 'Must not contain a NUL character');
  }
  if (value.length > METADATA_VALUE_LENGTH_MAX) {
    throw fieldError(
      'metadata',
      `A value must have at most ${METADATA_VALUE_LENGTH_MAX} characters`,
    );
  }
  if (filters.has(key)) return;
  if (filters.size === METADATA_FILTERS_MAX) {
    throw fieldError('metadata', `At most ${METADATA_FILTERS_MAX} keys are accepted`);
  }
  filters.set(key, value);
}
