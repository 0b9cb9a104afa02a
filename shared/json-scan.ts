/**
 * One strict pass over the bytes of a JSON text (RFC 8259) before JSON.parse may see it: grammar, depth, number
 * of members, lone surrogates, inexact numbers. It must never quote the text in an error. That the bytes are UTF-8
 * is for the caller to know. Bytes, since looking up a character of a text takes several times as long.
 */
import { ApiError } from './errors.ts';
import { ALWAYS_EXACT_LENGTH, isExactNumber } from './json-number.ts';

/**
 * Containers inside each other, counting the outermost. Deep enough for any real document, shallow
 * enough that every recursive walk over a parsed value is safe on the smallest stack.
 */
export const JSON_DEPTH_MAX = 64;

/** Members of all objects of a text together: 60,000 keys in one object cost 50 ms to parse. */
export const JSON_MEMBERS_MAX = 10_000;

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LETTER_E = 0x65;
const LETTER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** What may follow a backslash, except `u`. */
const SIMPLE_ESCAPES = Buffer.from('"\\/bfnrt');
const WORDS = ['true', 'false', 'null'].map((word) => Buffer.from(word));

/**
 * Digits and power of ten of a literal of `ALWAYS_EXACT_LENGTH`, together: up to here it stays away from both ends of
 * what a double holds, and nobody needs to be asked either.
 */
const ALWAYS_EXACT_SCALE = 307;

/** 1 for the bytes that stand for themselves in a string. */
const PLAIN = new Uint8Array(256).fill(1);
PLAIN.fill(0, 0, 0x20);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

const SPACE = new Uint8Array(256);
for (const byte of Buffer.from(' \n\r\t')) SPACE[byte] = 1;

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Checks a whole text and counts the members of all its objects.
 * Throws `bad_request` with line and column at the first thing that is not acceptable.
 * More members are for texts that are passed on and never parsed.
 */
export function scanJson(bytes: Buffer, depthMax: number, membersMax = JSON_MEMBERS_MAX): number {
  const scan = { bytes, depthMax, membersMax, onText: undefined, members: 0 };
  scanDocument(scan);
  return scan.members;
}

/**
 * Checks a whole text that is passed on as it is: grammar and depth alone, since what a number or an
 * escape means is for others to say. Tells where each text that is a value stands, quotes included;
 * names of members are not told. Throws as `scanJson` does.
 */
export function scanPassedJson(
  bytes: Buffer,
  depthMax: number,
  onText: (start: number, end: number) => void = ignore,
): void {
  scanDocument({ bytes, depthMax, membersMax: Number.POSITIVE_INFINITY, onText, members: 0 });
}

function ignore(): void {}

interface Scan {
  readonly bytes: Buffer;
  readonly depthMax: number;
  readonly membersMax: number;
  /** Only for texts that are passed on. */
  readonly onText: ((start: number, end: number) => void) | undefined;
  members: number;
}

// Each of these is given where something begins, and returns where it has ended. Behind the last byte there is
// `undefined`, which is none of those that are looked for.

function scanDocument(scan: Scan): void {
  const end = skipSpace(scan.bytes, scanValue(scan, 0, 0));
  if (end < scan.bytes.length) unexpected(scan, end);
}

/** `depth`: how many containers are around it. */
function scanValue(scan: Scan, position: number, depth: number): number {
  const start = skipSpace(scan.bytes, position);
  const first = scan.bytes[start];
  if (first === QUOTE) {
    const end = scanString(scan, start);
    scan.onText?.(start, end);
    return end;
  }
  if (first === OPEN_BRACE) return scanObject(scan, start, depth + 1);
  if (first === OPEN_BRACKET) return scanArray(scan, start, depth + 1);
  return isDigit(first) || first === MINUS ? scanNumber(scan, start) : scanWord(scan, start);
}

function scanObject(scan: Scan, start: number, depth: number): number {
  const { bytes } = scan;
  checkDepth(scan, start, depth);
  let position = skipSpace(bytes, start + 1);
  if (bytes[position] === CLOSE_BRACE) return position + 1;
  for (;;) {
    position = skipSpace(bytes, scanMember(scan, position, depth));
    if (bytes[position] === CLOSE_BRACE) return position + 1;
    if (bytes[position] !== COMMA) unexpected(scan, position);
    position = skipSpace(bytes, position + 1);
  }
}

function scanMember(scan: Scan, start: number, depth: number): number {
  const { bytes, membersMax } = scan;
  if (bytes[start] !== QUOTE) unexpected(scan, start);
  scan.members += 1;
  if (scan.members > membersMax) refuse(scan, `more than ${membersMax} object members`, start);
  const colon = skipSpace(bytes, scanString(scan, start));
  if (bytes[colon] !== COLON) unexpected(scan, colon);
  return scanValue(scan, colon + 1, depth);
}

function scanArray(scan: Scan, start: number, depth: number): number {
  const { bytes } = scan;
  checkDepth(scan, start, depth);
  let position = skipSpace(bytes, start + 1);
  if (bytes[position] === CLOSE_BRACKET) return position + 1;
  for (;;) {
    position = skipSpace(bytes, scanValue(scan, position, depth));
    if (bytes[position] === CLOSE_BRACKET) return position + 1;
    if (bytes[position] !== COMMA) unexpected(scan, position);
    position += 1;
  }
}

function checkDepth(scan: Scan, start: number, depth: number): void {
  if (depth > scan.depthMax) refuse(scan, `nested deeper than ${scan.depthMax} levels`, start);
}

function scanString(scan: Scan, start: number): number {
  const { bytes } = scan;
  const { length } = bytes;
  let position = start + 1;
  for (;;) {
    while (position < length && PLAIN[bytes[position] as number] === 1) position += 1;
    const byte = bytes[position];
    if (byte === QUOTE) return position + 1;
    // Else a control character, or the text ends inside of the string.
    if (byte !== BACKSLASH) unexpected(scan, position);
    position = scanEscape(scan, position);
  }
}

/** An escape, or the surrogate pair of escapes. */
function scanEscape(scan: Scan, start: number): number {
  const { bytes, onText } = scan;
  const letter = bytes[start + 1];
  if (letter !== LETTER_U) {
    if (letter === undefined || !SIMPLE_ESCAPES.includes(letter)) unexpected(scan, start + 1);
    return start + 2;
  }
  const unit = hexUnit(scan, start + 2);
  if (unit < 0xd800 || unit > 0xdfff || onText !== undefined) return start + 6;
  // UTF-8 holds no raw surrogate, so only another escape can complete the pair.
  const isPair = bytes[start + 6] === BACKSLASH && bytes[start + 7] === LETTER_U;
  if (unit < 0xdc00 && isPair) {
    const low = hexUnit(scan, start + 8);
    if (low >= 0xdc00 && low <= 0xdfff) return start + 12;
  }
  return refuse(scan, 'lone surrogate', start);
}

function hexUnit(scan: Scan, start: number): number {
  let unit = 0;
  for (let position = start; position < start + 4; position += 1) {
    const byte = scan.bytes[position];
    const letter = lowerCase(byte);
    if (isDigit(byte)) unit = unit * 16 + byte - ZERO;
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
    else unexpected(scan, position);
  }
  return unit;
}

function scanNumber(scan: Scan, start: number): number {
  const { bytes, onText } = scan;
  let position = bytes[start] === MINUS ? start + 1 : start;
  // A leading zero stands alone: `01` is not JSON.
  position = bytes[position] === ZERO ? position + 1 : scanDigits(scan, position);
  if (bytes[position] === POINT) position = scanDigits(scan, position + 1);
  const length = position - start;
  let isExact = length <= ALWAYS_EXACT_LENGTH;
  if (lowerCase(bytes[position]) === LETTER_E) {
    const sign = bytes[position + 1];
    const digits = position + (sign === PLUS || sign === MINUS ? 2 : 1);
    position = scanDigits(scan, digits);
    isExact &&= length + numberIn(bytes, digits, position) <= ALWAYS_EXACT_SCALE;
  }
  if (!isExact && onText === undefined) checkExact(scan, start, position);
  return position;
}

/** Of digits; infinite for too many of them. */
function numberIn(bytes: Buffer, start: number, end: number): number {
  let number = 0;
  for (let position = start; position < end; position += 1) {
    number = number * 10 + (bytes[position] as number) - ZERO;
  }
  return number;
}

function checkExact(scan: Scan, start: number, end: number): void {
  if (isExactNumber(scan.bytes.toString('latin1', start, end))) return;
  refuse(scan, 'number that cannot be kept exactly (send it as a string)', start);
}

/** At least one digit. */
function scanDigits(scan: Scan, start: number): number {
  let position = start;
  while (isDigit(scan.bytes[position])) position += 1;
  if (position === start) unexpected(scan, position);
  return position;
}

function scanWord(scan: Scan, start: number): number {
  for (const word of WORDS) {
    if (hasAt(scan.bytes, start, word)) return start + word.length;
  }
  return unexpected(scan, start);
}

function hasAt(bytes: Buffer, start: number, word: Buffer): boolean {
  for (let index = 0; index < word.length; index += 1) {
    if (bytes[start + index] !== word[index]) return false;
  }
  return true;
}

function skipSpace(bytes: Buffer, start: number): number {
  const { length } = bytes;
  let position = start;
  while (position < length && SPACE[bytes[position] as number] === 1) position += 1;
  return position;
}

function isDigit(byte: number | undefined): byte is number {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** Of letters; other bytes become no letter. */
function lowerCase(byte: number | undefined): number {
  return byte === undefined ? 0 : byte | 0x20;
}

function unexpected(scan: Scan, position: number): never {
  const end = scan.bytes.length;
  const what = position >= end ? 'unexpected end' : 'unexpected character';
  refuse(scan, what, Math.min(position, end));
}

/** Columns are counted in characters of UTF-16, as editors do. */
function refuse({ bytes }: Scan, what: string, position: number): never {
  let line = 1;
  let lineStart = 0;
  for (let index = 0; index < position; index += 1) {
    if (bytes[index] !== 0x0a) continue;
    line += 1;
    lineStart = index + 1;
  }
  const column = utf8.decode(bytes.subarray(lineStart, position)).length + 1;
  throw new ApiError('bad_request', `Invalid JSON: ${what} at line ${line}, column ${column}`);
}
