/**
 * Splits a template into text and `{{ … }}` placeholders, and a placeholder into tokens. A
 * placeholder ends at the first `}}`, wherever that stands, so that every reader of the language
 * sees the same borders. No character but space, tab, CR and LF is white space.
 */
import { ExpressionError } from './expression-error.ts';

export interface Placeholder {
  /** Offsets of the inside, without braces and white-space control dashes. */
  readonly start: number;
  readonly end: number;
}

export type TokenKind = 'name' | 'text' | 'number' | 'sign' | 'end' | 'bad';

export interface Token {
  readonly kind: TokenKind;
  /** Name, content of the quoted text, number as written, the sign, or what is wrong. */
  readonly text: string;
  readonly start: number;
}

const SIGNS = '.[]|:,';

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isNameStart(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f;
}

/** Names may hold dashes after the first character, as in Liquid. */
function isNamePart(code: number): boolean {
  return isNameStart(code) || isDigit(code) || code === 0x2d;
}

function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

function skipSpace(source: string, from: number): number {
  let index = from;
  while (isSpace(source.charCodeAt(index))) index += 1;
  return index;
}

/**
 * The texts and placeholders of a template in order; `{{-` and `-}}` cut white space of the text
 * beside them. Throws for tags (`{%`), braces without partner and braces inside braces.
 */
export function splitTemplate(source: string): (string | Placeholder)[] {
  const tag = source.indexOf('{%');
  if (tag >= 0) throw new ExpressionError('Tags are not supported', { position: tag });
  const parts: (string | Placeholder)[] = [];
  let index = 0;
  for (;;) {
    const open = source.indexOf('{{', index);
    const text = source.slice(index, open < 0 ? source.length : open);
    const stray = text.indexOf('}}');
    if (stray >= 0) throw new ExpressionError('"}}" without "{{"', { position: index + stray });
    const trimmed = open >= 0 && source[open + 2] === '-' ? trimEnd(text) : text;
    if (trimmed !== '') parts.push(trimmed);
    if (open < 0) return parts;
    const close = source.indexOf('}}', open + 2);
    if (close < 0) throw new ExpressionError('"{{" without "}}"', { position: open });
    parts.push(placeholder(source, open, close));
    index = source[close - 1] === '-' ? skipSpace(source, close + 2) : close + 2;
  }
}

function placeholder(source: string, open: number, close: number): Placeholder {
  const start = open + 2 + (source[open + 2] === '-' ? 1 : 0);
  const end = source[close - 1] === '-' && close - 1 >= start ? close - 1 : close;
  if (source.slice(open + 2, close).includes('{{')) {
    throw new ExpressionError('"{{" inside an expression', { position: open });
  }
  return { start, end: Math.max(start, end) };
}

/** Reads the tokens of `source` between `start` and `end`, one at a time, with one token ahead. */
export class TokenReader {
  readonly source: string;
  readonly end: number;
  current: Token;
  #index: number;

  constructor(source: string, start: number, end: number) {
    this.source = source;
    this.end = end;
    this.#index = start;
    this.current = this.#read();
  }

  /** Returns the current token and moves on. */
  next(): Token {
    const token = this.current;
    this.current = this.#read();
    return token;
  }

  /** Moves on and returns true when the current token is this sign. */
  take(sign: string): boolean {
    if (this.current.kind !== 'sign' || this.current.text !== sign) return false;
    this.next();
    return true;
  }

  /** Moves behind the `.name` of a path, where a name may also start with a digit. */
  takeMember(): Token | undefined {
    const { current } = this;
    if (current.kind === 'name') return this.next();
    if (current.kind !== 'number' && current.kind !== 'bad') return undefined;
    const stop = this.#runEnd(current.start);
    if (stop === current.start || !isDigit(this.source.charCodeAt(current.start))) return undefined;
    this.#index = stop;
    this.current = this.#read();
    return { kind: 'name', text: this.source.slice(current.start, stop), start: current.start };
  }

  #read(): Token {
    const start = Math.min(skipSpace(this.source, this.#index), this.end);
    this.#index = start;
    if (start >= this.end) return { kind: 'end', text: '', start };
    const code = this.source.charCodeAt(start);
    if (isNameStart(code)) return this.#token('name', start, this.#runEnd(start));
    if (isDigit(code) || code === 0x2d) return this.#readNumber(start);
    const sign = this.source.charAt(start);
    if (sign === '"' || sign === "'") return this.#readText(start, sign);
    if (SIGNS.includes(sign)) return this.#token('sign', start, start + 1);
    return this.#bad('Unexpected character', start);
  }

  #token(kind: TokenKind, start: number, stop: number): Token {
    this.#index = stop;
    return { kind, text: this.source.slice(start, stop), start };
  }

  #bad(problem: string, start: number): Token {
    this.#index = this.end;
    return { kind: 'bad', text: problem, start };
  }

  #runEnd(from: number): number {
    let index = from;
    while (index < this.end && isNamePart(this.source.charCodeAt(index))) index += 1;
    return index;
  }

  /** Liquid has no escapes: a text ends at the next quote of its kind. */
  #readText(start: number, quote: string): Token {
    const close = this.source.indexOf(quote, start + 1);
    if (close < 0 || close >= this.end) return this.#bad('Text without closing quote', start);
    this.#index = close + 1;
    return { kind: 'text', text: this.source.slice(start + 1, close), start };
  }

  #digitsEnd(from: number): number {
    let index = from;
    while (index < this.end && isDigit(this.source.charCodeAt(index))) index += 1;
    return index;
  }

  #readNumber(start: number): Token {
    const digits = this.source.charCodeAt(start) === 0x2d ? start + 1 : start;
    let stop = this.#digitsEnd(digits);
    if (stop === digits) return this.#bad('A number needs digits', start);
    if (this.source[stop] === '.' && stop < this.end) {
      const fraction = this.#digitsEnd(stop + 1);
      if (fraction === stop + 1) return this.#bad('A number needs digits after its point', start);
      stop = fraction;
    }
    if (stop < this.end && isNamePart(this.source.charCodeAt(stop))) {
      return this.#bad('A number must not run into a name', start);
    }
    return this.#token('number', start, stop);
  }
}
