/**
 * What a script returned, taken apart as text: `raw` goes to the caller as it is and is never parsed
 * (half a million members would hold up everybody's requests), only what is to be tokenized is.
 */
import { ApiError } from '../../shared/errors.ts';
import { JSON_DEPTH_MAX, scanJson } from '../../shared/json-scan.ts';
import { parseJson } from '../../shared/json-text.ts';

export interface Returned {
  /** `undefined` when there is nothing to tokenize. */
  tokenize: unknown;
  /** JSON text; `undefined` when absent. */
  raw: string | undefined;
}

/** `raw` or `tokenize` may be as deep as the data of a token. */
const DEPTH_MAX = JSON_DEPTH_MAX + 1;

/** What `POST /tokenize` takes: only this much is ever parsed. */
const TOKENIZE_BYTES_MAX = 1024 * 1024;

/** The members that count, and a letter of theirs written as an escape, which JSON.stringify never does. */
const NAMES = ['"raw"', '"tokenize"'];
const ESCAPED_LETTER = /\\u00[67]/;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const NOTHING: Returned = { tokenize: undefined, raw: undefined };

/** The result was no object, or is no JSON that we pass on; `message` says so to the caller. */
export class ReturnedError extends Error {}

/** Throws `ReturnedError`, and 400 for a `tokenize` that could not be a request of `POST /tokenize`. */
export function readReturned(text: string): Returned {
  checkJson(text);
  if (text === 'null') return NOTHING;
  if (!text.startsWith('{')) throw new ReturnedError('The code must return an object or nothing.');
  const members = membersOf(text);
  const tokenize = members.get('tokenize');
  return {
    tokenize: tokenize === undefined ? undefined : (parseTokenize(tokenize) ?? undefined),
    raw: members.get('raw'),
  };
}

function checkJson(text: string): void {
  try {
    scanJson(Buffer.from(text), DEPTH_MAX, Number.POSITIVE_INFINITY);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ReturnedError(`The result of the code cannot be passed on. ${error.message}`);
  }
}

function parseTokenize(text: string): unknown {
  if (Buffer.byteLength(text) > TOKENIZE_BYTES_MAX) {
    throw new ReturnedError('What the code returned as `tokenize` is larger than 1 MiB.');
  }
  return parseJson(Buffer.from(text), DEPTH_MAX - 1);
}

/**
 * `raw` and `tokenize`, or the members of the names given in quotes, of the object that a whole,
 * well-formed text is, each with its value's text.
 */
export function membersOf(text: string, names: readonly string[] = NAMES): Map<string, string> {
  const members = new Map<string, string>();
  let position = skipSpace(text, 1);
  while (text.charCodeAt(position) === QUOTE) {
    const nameEnd = endOfString(text, position);
    const quoted = text.slice(position, nameEnd);
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = endOfValue(text, start);
    // Of half a million other names none is decoded.
    if (names.includes(quoted) || ESCAPED_LETTER.test(quoted)) {
      members.set(String(JSON.parse(quoted)), text.slice(start, end).trimEnd());
    }
    position = skipSpace(text, end);
    if (text.charCodeAt(position) === COMMA) position = skipSpace(text, position + 1);
  }
  return members;
}

/** One past the closing quote of the string that starts here. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
  }
  return text.length;
}

/** At the comma or brace that ends the value that starts here. By character code: a text has millions. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let position = start; position < text.length; position += 1) {
    const code = text.charCodeAt(position);
    if (code === QUOTE) position = endOfString(text, position) - 1;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) depth += 1;
    else if (depth === 0 && (code === COMMA || code === CLOSE_BRACE)) return position;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth -= 1;
  }
  return text.length;
}

function skipSpace(text: string, start: number): number {
  let position = start;
  while (' \t\n\r'.includes(text.charAt(position)) && position < text.length) position += 1;
  return position;
}
