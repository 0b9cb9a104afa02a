/**
 * Which request bodies are read as JSON. Any other charset than UTF-8 is refused, never guessed.
 */
import { parse } from 'content-type';

/** Media type of every error body (RFC 9457 section 3). */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';
/** And of every other body that we make. */
export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8';

const JSON_TYPE = 'application/json';
const MERGE_PATCH_TYPE = 'application/merge-patch+json';

/** What nearly every client sends; anything else takes the parser. */
const COMMON_JSON = new Set([
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset=utf-8',
  'application/json; charset=UTF-8',
  'application/json;charset=UTF-8',
]);

/** True for `application/json`, charset absent or UTF-8; other parameters are ignored (RFC 8259). */
export function isJsonMediaType(contentType: string | undefined): boolean {
  if (contentType === undefined) return false;
  return COMMON_JSON.has(contentType) || isUtf8Type(contentType, JSON_TYPE);
}

/** True for `application/merge-patch+json` (RFC 7396), charset absent or UTF-8. */
export function isMergePatchMediaType(contentType: string | undefined): boolean {
  if (contentType === undefined) return false;
  return contentType === MERGE_PATCH_TYPE || isUtf8Type(contentType, MERGE_PATCH_TYPE);
}

function isUtf8Type(contentType: string, wanted: string): boolean {
  const { type, parameters } = parse(contentType);
  if (type !== wanted) return false;
  // The parser keeps the first of two; a second one is a disagreement between readers.
  const lower = contentType.toLowerCase();
  if (lower.indexOf('charset') !== lower.lastIndexOf('charset')) return false;
  const charset = parameters.charset?.toLowerCase();
  return charset === undefined || charset === 'utf-8' || charset === 'utf8';
}
