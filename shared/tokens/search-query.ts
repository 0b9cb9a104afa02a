/**
 * Reads the query language of token search (facts 7.1) into a tree. Small on purpose: what is not
 * exactly of the language is refused with its position, never guessed, and never repeated.
 *
 *   or    = and { "OR" and }
 *   and   = unary { [ "AND" ] unary }     where "AND" may be left out before a negation only
 *   unary = ( "NOT" | "!" | "-" ) unary | "(" or ")" | field ":" value
 */
import { fieldError } from '../errors.ts';
import { type SearchTerm, type SearchValue, searchTerm } from './search-term.ts';

export type SearchNode =
  | { readonly kind: 'and' | 'or'; readonly nodes: readonly SearchNode[] }
  | { readonly kind: 'not'; readonly node: SearchNode }
  | SearchTerm;

/** Facts 0.2. */
export const QUERY_LENGTH_MAX = 200;
/** Each may cost an index probe per token that is looked at. */
const TERMS_MAX = 20;
/** Parentheses and negations inside each other; keeps the recursion bounded. */
const DEPTH_MAX = 8;

/** White space and the signs of the language end a name or a value that is not in quotes. */
const ENDS_WORD = /[\s()"]/;
const ESCAPE = '\\';

/** `undefined` for a query without terms, which asks for all tokens. Throws 400 `errors.query`. */
export function parseSearchQuery(text: string): SearchNode | undefined {
  if (text.length > QUERY_LENGTH_MAX) refuse(`More than ${QUERY_LENGTH_MAX} characters`, 0);
  const nul = text.indexOf('\0');
  if (nul >= 0) refuse('A NUL character', nul);
  return text.trim() === '' ? undefined : new QueryReader(text).query();
}

function refuse(problem: string, position: number): never {
  throw fieldError('query', `${problem} (at character ${position})`);
}

class QueryReader {
  readonly #text: string;
  #position = 0;
  #terms = 0;

  constructor(text: string) {
    this.#text = text;
  }

  query(): SearchNode {
    const node = this.#or(1);
    if (this.#peek() !== '') refuse('Expected AND, OR or the end', this.#position);
    return node;
  }

  #or(depth: number): SearchNode {
    const nodes = [this.#and(depth)];
    while (this.#takeWord('OR')) nodes.push(this.#and(depth));
    return joined('or', nodes);
  }

  #and(depth: number): SearchNode {
    const nodes = [this.#unary(depth)];
    while (this.#takeWord('AND') || this.#isNegation()) nodes.push(this.#unary(depth));
    return joined('and', nodes);
  }

  #unary(depth: number): SearchNode {
    const next = this.#peek();
    if (depth > DEPTH_MAX) refuse(`Nested deeper than ${DEPTH_MAX} levels`, this.#position);
    if (this.#isNegation()) {
      if (!this.#takeWord('NOT')) this.#position += 1;
      return { kind: 'not', node: this.#unary(depth + 1) };
    }
    if (next !== '(') return this.#term();
    this.#position += 1;
    const node = this.#or(depth + 1);
    if (this.#peek() !== ')') refuse('Expected AND, OR or ")"', this.#position);
    this.#position += 1;
    return node;
  }

  #term(): SearchTerm {
    this.#terms += 1;
    const start = this.#position;
    if (this.#terms > TERMS_MAX) refuse(`More than ${TERMS_MAX} terms`, start);
    const { text: field } = this.#word(':');
    if (field === '' || this.#text[this.#position] !== ':') refuse('Expected field:value', start);
    this.#position += 1;
    const first = this.#peek();
    const valueStart = this.#position;
    const term = searchTerm(field, first === '[' || first === '{' ? this.#range() : this.#value());
    if (typeof term !== 'string') return term;
    return refuse(term, term.startsWith('Unknown') ? start : valueStart);
  }

  /** A value in quotes, or all characters up to white space or a parenthesis. */
  #value(): SearchValue {
    const start = this.#position;
    const isQuoted = this.#text[start] === '"';
    if (isQuoted) this.#position += 1;
    const { text, stars, endsInStar } = isQuoted ? this.#quoted() : this.#word('');
    if (text === '') refuse('Expected a value', start);
    return { kind: 'text', text, stars, endsInStar, isQuoted };
  }

  /** `[a TO b]` includes its ends, `{a TO b}` does not; the brackets may differ (facts 7.1). */
  #range(): SearchValue {
    const includesFrom = this.#text[this.#position] === '[';
    this.#position += 1;
    const from = this.#bound();
    if (!this.#takeWord('TO')) refuse('Expected TO', this.#position);
    const to = this.#bound();
    const close = this.#peek();
    if (close !== ']' && close !== '}') refuse('Expected "]" or "}"', this.#position);
    this.#position += 1;
    return { kind: 'range', from, to, includesFrom, includesTo: close === ']' };
  }

  #bound(): string {
    this.#peek();
    const [text = ''] = /^[^\s()[\]{}"]*/.exec(this.#text.slice(this.#position)) ?? [];
    if (text === '') refuse('Expected a date or "*"', this.#position);
    this.#position += text.length;
    return text;
  }

  /** Up to what ends a word, or the sign `stop`; a backslash takes the character after it as it is. */
  #word(stop: string): { text: string; stars: number; endsInStar: boolean } {
    return this.#characters((character) => ENDS_WORD.test(character) || character === stop);
  }

  #quoted(): { text: string; stars: number; endsInStar: boolean } {
    const read = this.#characters((character) => character === '"');
    if (this.#text[this.#position] !== '"') refuse('A quote is not closed', this.#position);
    this.#position += 1;
    return read;
  }

  #characters(ends: (character: string) => boolean): {
    text: string;
    stars: number;
    endsInStar: boolean;
  } {
    let text = '';
    let stars = 0;
    let endsInStar = false;
    for (;;) {
      const character = this.#text[this.#position] ?? '';
      if (character === '' || ends(character)) return { text, stars, endsInStar };
      this.#position += 1;
      endsInStar = character === '*';
      if (endsInStar) stars += 1;
      text += character === ESCAPE ? this.#escaped() : character;
    }
  }

  #escaped(): string {
    const character = this.#text[this.#position];
    if (character === undefined) refuse('Nothing follows the backslash', this.#position);
    this.#position += 1;
    return character;
  }

  #isNegation(): boolean {
    const next = this.#peek();
    return next === '!' || next === '-' || this.#isWord('NOT');
  }

  #takeWord(word: string): boolean {
    if (!this.#isWord(word)) return false;
    this.#position += word.length;
    return true;
  }

  /** Whether the operator `word` is next: in capitals, and not the beginning of a longer word. */
  #isWord(word: string): boolean {
    this.#peek();
    if (!this.#text.startsWith(word, this.#position)) return false;
    const after = this.#text[this.#position + word.length] ?? ' ';
    return /[\s()[\]{}!"-]/.test(after);
  }

  /** The next character that is not white space, moving up to it; empty at the end. */
  #peek(): string {
    while (/\s/.test(this.#text[this.#position] ?? '')) this.#position += 1;
    return this.#text[this.#position] ?? '';
  }
}

function joined(kind: 'and' | 'or', nodes: SearchNode[]): SearchNode {
  const [only] = nodes;
  return nodes.length === 1 && only !== undefined ? only : { kind, nodes };
}
