/**
 * Compiles texts whose `{{ <token id> | filters }}` stand for token data (facts 6.3). What is before
 * the first `|` is an id taken literally, never parsed; inserted data is never read as an expression.
 */
import { stringifyJson } from '../json-text.ts';
import { tokenIdProblem } from '../tokens/token-id.ts';
import { compileTemplate, hasExpression } from './compile.ts';
import { ExpressionError } from './expression-error.ts';
import { DETOKENIZATION_EXPRESSIONS_MAX, DETOKENIZATION_OUTPUT_MAX } from './limits.ts';
import { Meter } from './meter.ts';
import { toText } from './values.ts';

/** What an expression sees of a token: already as the access rules let it be seen. */
export interface TokenView {
  /** The value of `{{ <id> }}`; null when nothing of the data may be seen. */
  readonly data: unknown;
  /** The value of `{{ token: <id> }}`: the whole token as a read answers it. */
  readonly token: unknown;
}

export interface Detokenization {
  /** Distinct, in order of appearance; empty for a text without expressions. */
  readonly tokenIds: readonly string[];
  /** How many there are, repeated ids too. */
  readonly expressions: number;
  /**
   * The text with its expressions replaced. A text that is one expression yields any JSON value
   * (it may share objects with the views, so do not change it), any other yields text; in text null
   * is empty, objects and lists are compact JSON. `tokens` has a view of each of `tokenIds`. Throws
   * ExpressionError.
   */
  evaluate(tokens: ReadonlyMap<string, TokenView>, meter: Meter): unknown;
}

type Insert = (tokens: ReadonlyMap<string, TokenView>, meter: Meter) => unknown;
type Part = string | Insert;

const WHOLE_TOKEN_PREFIX = 'token:';

/** At an end of an id other white space than ours, or anywhere a character without width. */
const UNSEEN = /^\s|\s$|\p{Cf}/u;

/** A meter of all that one request has injected. */
export const detokenizationMeter = (): Meter => new Meter(DETOKENIZATION_OUTPUT_MAX);

/**
 * Throws ExpressionError for braces without partner, braces inside braces, tags, what cannot be a
 * token id, and filters that are not of the language. Texts are not cached, they may hold what must
 * not linger; their filters are, by `compileTemplate`.
 */
export function compileDetokenization(source: string): Detokenization {
  const tokenIds = new Set<string>();
  const parts = hasExpression(source) ? compileParts(source, tokenIds) : [];
  const expressions = parts.filter((part) => typeof part === 'function').length;
  if (expressions === 0) return { tokenIds: [], expressions, evaluate: () => source };
  const [only] = parts;
  const evaluate: Detokenization['evaluate'] =
    parts.length === 1 && typeof only === 'function'
      ? (tokens, meter) => injected(() => only(tokens, meter), meter)
      : (tokens, meter) => {
          let text = '';
          for (const part of parts) {
            text += typeof part === 'string' ? part : textOf(() => part(tokens, meter), meter);
          }
          return text;
        };
  return { tokenIds: [...tokenIds], expressions, evaluate };
}

/** Too much for one request, be it in one text or in many. */
export function tooManyExpressions(): ExpressionError {
  return new ExpressionError(`More than ${DETOKENIZATION_EXPRESSIONS_MAX} expressions`);
}

function compileParts(source: string, tokenIds: Set<string>): Part[] {
  const tag = source.indexOf('{%');
  if (tag >= 0) throw new ExpressionError('Tags are not supported', { position: tag });
  const parts: Part[] = [];
  let index = 0;
  for (;;) {
    const open = source.indexOf('{{', index);
    const text = source.slice(index, open < 0 ? source.length : open);
    const stray = text.indexOf('}}');
    if (stray >= 0) throw new ExpressionError('"}}" without "{{"', { position: index + stray });
    if (text !== '') parts.push(text);
    if (open < 0) return parts;
    const close = source.indexOf('}}', open + 2);
    if (close < 0) throw new ExpressionError('"{{" without "}}"', { position: open });
    parts.push(compilePlaceholder(source.slice(open + 2, close), open, tokenIds));
    // Texts and expressions may alternate.
    if (parts.length > 2 * DETOKENIZATION_EXPRESSIONS_MAX + 1) throw tooManyExpressions();
    index = close + 2;
  }
}

/** `inside` is what stands between the braces, which open at `open`. */
function compilePlaceholder(inside: string, open: number, tokenIds: Set<string>): Part {
  if (inside.includes('{{')) {
    throw new ExpressionError('"{{" inside an expression', { position: open });
  }
  const pipe = inside.indexOf('|');
  const name = trimSpace(pipe < 0 ? inside : inside.slice(0, pipe));
  const isWhole = name.startsWith(WHOLE_TOKEN_PREFIX);
  const tokenId = isWhole ? trimSpace(name.slice(WHOLE_TOKEN_PREFIX.length)) : name;
  const problem = tokenIdProblem(tokenId);
  if (problem !== undefined) {
    // Looks like an id and is none, so it is no expression either (attacks row 76).
    if (tokenId.length > 0 && UNSEEN.test(tokenId)) return `{{${inside}}}`;
    throw new ExpressionError(problem, { position: open });
  }
  tokenIds.add(tokenId);
  const variable = isWhole ? 'token' : 'data';
  const filters = pipe < 0 ? '' : inside.slice(pipe);
  // From an offset in the template that is compiled to the one in the source.
  const place = { shift: open + pipe - variable.length, end: open + 2 + inside.length };
  const template = relocated(place, () => compileTemplate(`{{${variable}${filters} }}`));
  return (tokens, meter) => {
    const view = tokens.get(tokenId);
    if (view === undefined) throw new Error('a token that was not read');
    return relocated(place, () => template.evaluate({ [variable]: view[variable] }, meter));
  };
}

/** Runs `work`; the position of an error is moved by `shift`, and lies not behind `end`. */
function relocated<T>({ shift, end }: { shift: number; end: number }, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ExpressionError) || error.position === undefined) throw error;
    throw new ExpressionError(error.problem, { position: Math.min(error.position + shift, end) });
  }
}

/** Counts the JSON text that a value will become: a list of long numbers is longer than it seems. */
function injected<T>(evaluate: () => T, meter: Meter): T {
  const before = meter.outputLeft;
  const value = evaluate();
  const counted = before - meter.outputLeft;
  meter.emit(Math.max(0, stringifyJson(value).length - counted));
  return value;
}

function textOf(evaluate: () => unknown, meter: Meter): string {
  return injected(() => {
    const value = evaluate();
    return typeof value === 'object' && value !== null ? stringifyJson(value) : toText(value);
  }, meter);
}

/** Without space, tab, CR and LF at the ends: the white space of the language, and no other. */
function trimSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start += 1;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;
}
