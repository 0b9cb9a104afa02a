/**
 * Token metadata: short clear-text labels that lists are filtered by. Checks the shape and knows the
 * case fold of filters; it must never be mistaken for a place for secrets.
 */
import { fieldError } from '../errors.ts';

/** Guards against abuse; the original service names no limits (facts 5.4). */
export const METADATA_KEYS_MAX = 50;

/** UTF-16 code units. */
export const METADATA_KEY_LENGTH_MAX = 100;
export const METADATA_VALUE_LENGTH_MAX = 500;

/** Facts 2.1: how a value of the wrong JSON type is reported. */
const WRONG_TYPE = 'Deserialization error, invalid input.';

/**
 * `metadata` of a create request, or what a merge patch made of the stored one (a null that a patch
 * left behind, or a null on creation, is no string). Keys are free text, dots and `__proto__`
 * included. Throws `errors.metadata` for anything that is not a map of at most 50 keys to strings,
 * over the lengths above, or not storable as text. Returns the value itself.
 */
export function validateMetadata(value: unknown): Record<string, string> {
  const problem = metadataProblem(value);
  if (problem !== undefined) throw fieldError('metadata', problem);
  return value as Record<string, string>;
}

/** The message names no key: keys are input too. */
function metadataProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return WRONG_TYPE;
  const entries: [string, unknown][] = Object.entries(value);
  if (entries.length > METADATA_KEYS_MAX) return `At most ${METADATA_KEYS_MAX} keys are allowed`;
  for (const [key, text] of entries) {
    if (typeof text !== 'string') return WRONG_TYPE;
    if (key.length < 1 || key.length > METADATA_KEY_LENGTH_MAX) {
      return `Keys have 1 to ${METADATA_KEY_LENGTH_MAX} characters`;
    }
    if (text.length > METADATA_VALUE_LENGTH_MAX) {
      return `Values have at most ${METADATA_VALUE_LENGTH_MAX} characters`;
    }
    if (!isStorable(key) || !isStorable(text)) {
      return 'NUL and unpaired surrogate characters are not allowed';
    }
  }
  return undefined;
}

/** Postgres text takes neither NUL nor half of a surrogate pair. */
function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * The form in which filter values are compared: case-insensitive, otherwise exact. Unicode full case
 * mapping, independent of language: lower, then upper (joins ß and ss, ς and σ), then lower. No
 * normalisation: a composed and a decomposed letter stay different.
 */
export function foldMetadataValue(value: string): string {
  return value.toLowerCase().toUpperCase().toLowerCase();
}
