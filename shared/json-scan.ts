/**
 * One strict pass over a JSON text (RFC 8259) before JSON.parse may see it: grammar, depth, number
 * of members, lone surrogates, inexact numbers. It must never quote the text in an error.
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
const SIMPLE_ESCAPES = '"\\/bfnrt';

/**
 * Checks a whole text and counts the members of all its objects.
 * Throws `bad_request` with line and column at the first thing that is not acceptable.
 * More members are for texts that are passed on and never parsed.
 */
export function scanJson(text: string, depthMax: number, membersMax = JSON_MEMBERS_MAX): number {
  const scan = new JsonScan(text, depthMax, membersMax);
  scan.document();
  return scan.members;
}

/**
 * Checks a whole text that is passed on as it is: grammar and depth alone, since what a number or an
 * escape means is for others to say. Tells where each text that is a value stands, quotes included;
 * names of members are not told. Throws as `scanJson` does.
 */
export function scanPassedJson(
  text: string,
  depthMax: number,
  onText: (start: number, end: number) => void = ignore,
): void {
  new JsonScan(text, depthMax, Number.POSITIVE_INFINITY, onText).document();
}

function ignore(): void {}

class JsonScan {
  members = 0;
  readonly #text: string;
  readonly #depthMax: number;
  readonly #membersMax: number;
  /** Only for texts that are passed on. */
  readonly #onText: ((start: number, end: number) => void) | undefined;
  #position = 0;
  #depth = 0;

  constructor(
    text: string,
    depthMax: number,
    membersMax: number,
    onText?: (start: number, end: number) => void,
  ) {
    this.#text = text;
    this.#depthMax = depthMax;
    this.#membersMax = membersMax;
    this.#onText = onText;
  }

  document(): void {
    this.#value();
    this.#skipSpace();
    if (this.#position < this.#text.length) this.#unexpected();
  }

  #value(): void {
    const first = this.#skipSpace();
    if (first === QUOTE) this.#valueText();
    else if (first === OPEN_BRACE) this.#object();
    else if (first === OPEN_BRACKET) this.#array();
    else if (first === MINUS || (first >= ZERO && first <= NINE)) this.#number();
    else this.#word();
  }

  #valueText(): void {
    const start = this.#position;
    this.#string();
    this.#onText?.(start, this.#position);
  }

  #object(): void {
    this.#enter();
    if (this.#skipSpace() !== CLOSE_BRACE) {
      do this.#member();
      while (this.#continues(CLOSE_BRACE));
    }
    this.#leave();
  }

  #member(): void {
    if (this.#skipSpace() !== QUOTE) this.#unexpected();
    this.members += 1;
    if (this.members > this.#membersMax) {
      this.#refuse(`more than ${this.#membersMax} object members`);
    }
    this.#string();
    if (this.#skipSpace() !== COLON) this.#unexpected();
    this.#position += 1;
    this.#value();
  }

  #array(): void {
    this.#enter();
    if (this.#skipSpace() !== CLOSE_BRACKET) {
      do this.#value();
      while (this.#continues(CLOSE_BRACKET));
    }
    this.#leave();
  }

  /** True past a comma, false at `close`. */
  #continues(close: number): boolean {
    const next = this.#skipSpace();
    if (next === close) return false;
    if (next !== COMMA) this.#unexpected();
    this.#position += 1;
    return true;
  }

  /** Past the opening bracket or brace. */
  #enter(): void {
    this.#depth += 1;
    if (this.#depth > this.#depthMax) this.#refuse(`nested deeper than ${this.#depthMax} levels`);
    this.#position += 1;
  }

  /** Past the closing bracket or brace. */
  #leave(): void {
    this.#depth -= 1;
    this.#position += 1;
  }

  #string(): void {
    const text = this.#text;
    let position = this.#position + 1;
    for (;;) {
      const code = text.charCodeAt(position);
      if (code === QUOTE) break;
      if (code === BACKSLASH) position = this.#escape(position);
      else if (code >= 0x20) position += 1;
      // A control character, or NaN: the text ends inside the string.
      else this.#unexpected(position);
    }
    this.#position = position + 1;
  }

  /** The position after the escape (or the surrogate pair of escapes) that starts at `start`. */
  #escape(start: number): number {
    if (this.#text.charCodeAt(start + 1) !== LETTER_U) {
      const letter = this.#text.charAt(start + 1);
      if (letter === '' || !SIMPLE_ESCAPES.includes(letter)) this.#unexpected(start + 1);
      return start + 2;
    }
    const unit = this.#hexUnit(start + 2);
    if (unit < 0xd800 || unit > 0xdfff || this.#onText !== undefined) return start + 6;
    // The decoded text holds no raw surrogate alone, so only another escape can complete the pair.
    if (unit < 0xdc00 && this.#text.startsWith('\\u', start + 6)) {
      const low = this.#hexUnit(start + 8);
      if (low >= 0xdc00 && low <= 0xdfff) return start + 12;
    }
    return this.#refuse('lone surrogate', start);
  }

  #hexUnit(start: number): number {
    let unit = 0;
    for (let position = start; position < start + 4; position += 1) {
      const code = this.#text.charCodeAt(position);
      const letter = code | 0x20;
      if (code >= ZERO && code <= NINE) unit = unit * 16 + code - ZERO;
      else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
      else this.#unexpected(position);
    }
    return unit;
  }

  #number(): void {
    const text = this.#text;
    const start = this.#position;
    if (text.charCodeAt(this.#position) === MINUS) this.#position += 1;
    // A leading zero stands alone: `01` is not JSON.
    if (text.charCodeAt(this.#position) === ZERO) this.#position += 1;
    else this.#digits();
    if (text.charCodeAt(this.#position) === POINT) {
      this.#position += 1;
      this.#digits();
    }
    let exact = this.#position - start <= ALWAYS_EXACT_LENGTH;
    if ((text.charCodeAt(this.#position) | 0x20) === LETTER_E) {
      exact = false;
      this.#position += 1;
      const sign = text.charAt(this.#position);
      if (sign === '+' || sign === '-') this.#position += 1;
      this.#digits();
    }
    if (exact || this.#onText !== undefined) return;
    if (!isExactNumber(text.slice(start, this.#position))) {
      this.#refuse('number that cannot be kept exactly (send it as a string)', start);
    }
  }

  /** At least one digit. */
  #digits(): void {
    const start = this.#position;
    for (;;) {
      const code = this.#text.charCodeAt(this.#position);
      if (!(code >= ZERO && code <= NINE)) break;
      this.#position += 1;
    }
    if (this.#position === start) this.#unexpected();
  }

  #word(): void {
    for (const word of ['true', 'false', 'null']) {
      if (this.#text.startsWith(word, this.#position)) {
        this.#position += word.length;
        return;
      }
    }
    this.#unexpected();
  }

  /** Skips white space and returns the code of what follows; NaN at the end of the text. */
  #skipSpace(): number {
    let code = this.#text.charCodeAt(this.#position);
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      this.#position += 1;
      code = this.#text.charCodeAt(this.#position);
    }
    return code;
  }

  #unexpected(position: number = this.#position): never {
    this.#refuse(
      position >= this.#text.length ? 'unexpected end' : 'unexpected character',
      Math.min(position, this.#text.length),
    );
  }

  #refuse(what: string, position: number = this.#position): never {
    let line = 1;
    let lineStart = 0;
    for (let index = 0; index < position; index += 1) {
      if (this.#text.charCodeAt(index) !== 0x0a) continue;
      line += 1;
      lineStart = index + 1;
    }
    const column = position - lineStart + 1;
    throw new ApiError('bad_request', `Invalid JSON: ${what} at line ${line}, column ${column}`);
  }
}
