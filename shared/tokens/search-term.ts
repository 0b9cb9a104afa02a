/**
 * What the fields of a token search mean (facts 7.1): each with the values it takes. A value that a
 * field cannot have is an error, not a search without results, where that can be told.
 */
import { CONTAINER_LENGTH_MAX, normaliseContainer } from '../access/containers.ts';
import { parseExpiresAt } from './expires-at.ts';

/** A value as it is written, backslashes resolved. */
export type SearchValue =
  | {
      readonly kind: 'text';
      readonly text: string;
      /** How many `*` stand in it without a backslash, and whether one is at the end. */
      readonly stars: number;
      readonly endsInStar: boolean;
      readonly isQuoted: boolean;
    }
  | {
      readonly kind: 'range';
      readonly from: string;
      readonly to: string;
      readonly includesFrom: boolean;
      readonly includesTo: boolean;
    };

export type SearchTerm =
  | { readonly kind: 'id' | 'type' | 'fingerprint'; readonly value: string }
  | { readonly kind: 'data'; readonly value: string }
  | { readonly kind: 'created_by' | 'modified_by'; readonly value: string }
  | { readonly kind: 'metadata'; readonly name: string; readonly value: string }
  /** The container itself, in normal form, or all whose path begins with `path`. */
  | { readonly kind: 'container'; readonly path: string; readonly isPrefix: boolean }
  /** From (inclusive) and before, milliseconds since the epoch; undefined is open. */
  | {
      readonly kind: 'created_at' | 'modified_at';
      readonly from_ms: number | undefined;
      readonly before_ms: number | undefined;
    };

const METADATA_PREFIX = 'metadata.';
const DAY_MS = 24 * 60 * 60 * 1000;
const ISO_DATE = /^\d{4}-\d{2}-\d{2}$/;
const CONTAINER_PREFIX = /^\/[a-z0-9_/-]*$/;

/** The term, or what is wrong with it; texts that begin with "Unknown" are about the field. */
export function searchTerm(field: string, value: SearchValue): SearchTerm | string {
  if (field === 'created_at' || field === 'modified_at') return timeTerm(field, value);
  if (value.kind === 'range') return 'Only dates have ranges';
  if (field === 'container') return containerTerm(value);
  if (value.stars > 0 && !value.isQuoted) return 'Only containers may end in "*"';
  const { text } = value;
  switch (field) {
    case 'id':
    case 'type':
    case 'fingerprint':
    case 'created_by':
    case 'modified_by':
      return { kind: field, value: text };
    case 'data':
      return { kind: field, value: text };
  }
  if (!field.startsWith(METADATA_PREFIX)) return 'Unknown field';
  const name = field.slice(METADATA_PREFIX.length);
  return name === '' ? 'Unknown field' : { kind: 'metadata', name, value: text };
}

/** Container paths are compared in lower case, in which they are stored. */
function containerTerm({ text, stars, endsInStar }: SearchValue & { kind: 'text' }) {
  const kind = 'container' as const;
  if (stars === 0) {
    const path = normaliseContainer(text);
    return path === undefined ? 'Not a container' : { kind, path, isPrefix: false };
  }
  if (stars > 1 || !endsInStar) return 'A container may have one "*", at its end';
  const path = text.slice(0, -1).toLowerCase();
  if (path.length > CONTAINER_LENGTH_MAX || !CONTAINER_PREFIX.test(path)) {
    return 'Not the beginning of a container';
  }
  return { kind, path, isPrefix: true };
}

function timeTerm(kind: 'created_at' | 'modified_at', value: SearchValue): SearchTerm | string {
  if (value.kind !== 'range') return 'Dates are searched by a range such as [2023-01-01 TO *]';
  const from = spanOf(value.from);
  const to = spanOf(value.to);
  if (from === undefined || to === undefined) return 'Expected ISO 8601 dates or "*"';
  return {
    kind,
    from_ms: value.includesFrom ? from?.from_ms : from?.before_ms,
    before_ms: value.includesTo ? to?.before_ms : to?.from_ms,
  };
}

/**
 * What a bound covers: a date its whole day in UTC, a date-time its millisecond, the unit in which
 * tokens are stamped. `null` is the open bound, `undefined` no date.
 */
function spanOf(text: string): { from_ms: number; before_ms: number } | null | undefined {
  if (text === '*') return null;
  const from_ms = /^\d{4}-/.test(text) ? parseExpiresAt(text)?.getTime() : undefined;
  if (from_ms === undefined) return undefined;
  return { from_ms, before_ms: from_ms + (ISO_DATE.test(text) ? DAY_MS : 1) };
}
