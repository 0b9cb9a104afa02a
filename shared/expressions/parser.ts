/**
 * Grammar of a template: `value ("|" filter (":" argument ("," argument)*)?)*` in each placeholder.
 * Knows nothing of filters or data; only the shape is judged here.
 */
import { ExpressionError } from './expression-error.ts';
import { FILTERS_MAX, SOURCE_MAX } from './limits.ts';
import { splitTemplate, type Token, TokenReader } from './tokenizer.ts';
import { parseDecimal } from './values.ts';

export type Value =
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  | { readonly kind: 'path'; readonly head: string; readonly steps: readonly (string | number)[] };

export interface Argument {
  /** Set for `name: value`. */
  readonly name: string | undefined;
  readonly value: Value;
}

export interface FilterCall {
  readonly name: string;
  readonly position: number;
  readonly arguments: readonly Argument[];
}

export interface Expression {
  readonly value: Value;
  readonly filters: readonly FilterCall[];
}

export interface ParsedTemplate {
  readonly parts: readonly (string | Expression)[];
  /**
   * Where text follows a valid path without a `|` between (`{{ data.number, reveal_last: 4 }}`), or
   * undefined. Such a template is an error everywhere but in a mask, and must never be evaluated.
   */
  readonly trailingAt: number | undefined;
}

const KEYWORDS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['nil', null],
  ['null', null],
]);

/** Throws ExpressionError for a source that is too long or not of the language. */
export function parseTemplate(source: string): ParsedTemplate {
  if (source.length > SOURCE_MAX) {
    throw new ExpressionError(`An expression must not be longer than ${SOURCE_MAX} characters`);
  }
  let trailingAt: number | undefined;
  const parts = splitTemplate(source).map((part) => {
    if (typeof part === 'string') return part;
    const reader = new TokenReader(source, part.start, part.end);
    const value = readValue(reader);
    if (value.kind === 'path' && isTrailing(reader.current)) {
      trailingAt ??= reader.current.start;
      return { value, filters: [] };
    }
    return { value, filters: readFilters(reader) };
  });
  return { parts, trailingAt };
}

function isTrailing(token: Token): boolean {
  return token.kind !== 'end' && !(token.kind === 'sign' && token.text === '|');
}

function unexpected(token: Token, wanted: string): ExpressionError {
  const problem = token.kind === 'bad' ? token.text : `Expected ${wanted}`;
  return new ExpressionError(problem, { position: token.start });
}

function readValue(reader: TokenReader): Value {
  const token = reader.current;
  if (token.kind === 'text') {
    reader.next();
    return { kind: 'literal', value: token.text };
  }
  if (token.kind === 'number') {
    reader.next();
    return { kind: 'literal', value: readNumber(token) };
  }
  if (token.kind !== 'name') throw unexpected(token, 'a variable or a literal');
  reader.next();
  const keyword = KEYWORDS.get(token.text);
  if (keyword !== undefined) return { kind: 'literal', value: keyword };
  return { kind: 'path', head: token.text, steps: readSteps(reader) };
}

function readNumber(token: Token): number {
  const value = parseDecimal(token.text);
  if (value === undefined) {
    throw new ExpressionError('The number has too many digits', { position: token.start });
  }
  return value;
}

function readSteps(reader: TokenReader): (string | number)[] {
  const steps: (string | number)[] = [];
  for (;;) {
    if (reader.take('.')) {
      const member = reader.takeMember();
      if (member === undefined) throw unexpected(reader.current, 'a member name after "."');
      steps.push(member.text);
    } else if (reader.take('[')) {
      steps.push(readBracket(reader));
    } else {
      return steps;
    }
  }
}

function readBracket(reader: TokenReader): string | number {
  const token = reader.next();
  if (token.kind !== 'text' && token.kind !== 'number') {
    throw unexpected(token, 'a quoted name or an index after "["');
  }
  const step = token.kind === 'text' ? token.text : readNumber(token);
  if (typeof step === 'number' && !Number.isSafeInteger(step)) {
    throw unexpected(token, 'a whole number as index');
  }
  if (!reader.take(']')) throw unexpected(reader.current, '"]"');
  return step;
}

function readFilters(reader: TokenReader): FilterCall[] {
  const filters: FilterCall[] = [];
  while (reader.take('|')) {
    const token = reader.next();
    if (token.kind !== 'name') throw unexpected(token, 'a filter name after "|"');
    if (filters.length === FILTERS_MAX) {
      throw new ExpressionError(`More than ${FILTERS_MAX} filters`, { position: token.start });
    }
    const list = reader.take(':') ? readArguments(reader) : [];
    filters.push({ name: token.text, position: token.start, arguments: list });
  }
  if (reader.current.kind !== 'end') throw unexpected(reader.current, '"|" or "}}"');
  return filters;
}

function readArguments(reader: TokenReader): Argument[] {
  const list: Argument[] = [];
  do {
    const value = readValue(reader);
    if (value.kind === 'path' && value.steps.length === 0 && reader.take(':')) {
      list.push({ name: value.head, value: readValue(reader) });
    } else {
      list.push({ name: undefined, value });
    }
  } while (reader.take(','));
  return list;
}
