/**
 * The rule for token ids that clients choose or expressions yield (facts 5.3, design section 12).
 * It keeps every accepted id usable in a path, an expression and a log line. Ids are compared byte
 * by byte: case and normalisation forms make different ids.
 */

/** UTF-16 code units, as the original service and JavaScript count. */
export const TOKEN_ID_LENGTH_MIN = 3;
export const TOKEN_ID_LENGTH_MAX = 400;

const FORBIDDEN_CHARACTERS = '#/\\+?[]|&=%<>{}^';

const ASCII_FORBIDDEN = asciiTable();

/** Control, format (zero width, text direction), line separators, and surrogates without partner. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

function asciiTable(): readonly boolean[] {
  const table = Array.from({ length: 0x80 }, (_, code) => code < 0x20 || code === 0x7f);
  for (const character of FORBIDDEN_CHARACTERS) table[character.charCodeAt(0)] = true;
  return table;
}

/**
 * Why this cannot be a token id, or undefined when it can; the message does not repeat the id.
 * Emoji are fine as long as no zero width joiner holds them together.
 */
export function tokenIdProblem(id: string): string | undefined {
  if (id.length < TOKEN_ID_LENGTH_MIN || id.length > TOKEN_ID_LENGTH_MAX) {
    return `A token id has ${TOKEN_ID_LENGTH_MIN} to ${TOKEN_ID_LENGTH_MAX} characters`;
  }
  let ascii = true;
  for (let index = 0; index < id.length; index += 1) {
    const code = id.charCodeAt(index);
    if (code >= 0x80) ascii = false;
    else if (ASCII_FORBIDDEN[code]) {
      return `A token id must not contain control characters or any of ${FORBIDDEN_CHARACTERS}`;
    }
  }
  if (!ascii && UNSEEN.test(id)) {
    return 'A token id must not contain control, format or unpaired surrogate characters';
  }
  if (id.trim() !== id) return 'A token id must not start or end with white space';
  return undefined;
}
