/**
 * Compiles texts whose `{{ <token id> | filters }}` stand for token data (facts 6.3). What is before
 * the first `|` is an id taken literally, never parsed; inserted data is never read as an expression.
 */
import { stringifyJson } from '../json-text.ts';
import { tokenIdProblem } from '../tokens/token-id.ts';
import { compileTemplate, hasExpression, type Template } from './compile.ts';
import { ExpressionError } from './expression-error.ts';
import {
  DETOKENIZATION_EXPRESSIONS_MAX,
  DETOKENIZATION_FILTERS_MAX,
  DETOKENIZATION_OUTPUT_MAX,
} from './limits.ts';
import { Meter } from './meter.ts';
import { toText } from './values.ts';

/** What an expression sees of a token: already as the access rules let it be seen. */
export interface TokenView {
  /** The value of `{{ <id> }}`; null when nothing of the data may be seen. */
  readonly data: unknown;
  /** The value of `{{ token: <id> }}`: the whole token as a read answers it. */
  readonly token: unknown;
}

/** Tokens that are to be put in. */
export interface TokensInUse {
  /** Distinct, in order of appearance. */
  readonly tokenIds: readonly string[];
  /** Whether any of them is put in whole; else data is all that is looked at. */
  readonly usesWhole: boolean;
}

/** What the texts of one request have in common: the tokens they name, and bounds of expressions. */
export class NamedTokens implements TokensInUse {
  readonly #ids = new Set<string>();
  readonly #onName: () => void;
  #usesWhole = false;
  #expressions = 0;
  #filters = 0;

  /** `onName` may throw for who uses no tokens, before anything is compiled for it. */
  constructor(onName: () => void = () => undefined) {
    this.#onName = onName;
  }

  get tokenIds(): readonly string[] {
    return [...this.#ids];
  }

  get usesWhole(): boolean {
    return this.#usesWhole;
  }

  get isEmpty(): boolean {
    return this.#ids.size === 0;
  }

  add(tokenId: string, isWhole: boolean): void {
    this.#onName();
    this.#ids.add(tokenId);
    this.#usesWhole ||= isWhole;
  }

  /** Repeated ids count too. Throws ExpressionError when there are too many. */
  count(expressions: number): void {
    this.#expressions += expressions;
    if (this.#expressions > DETOKENIZATION_EXPRESSIONS_MAX) throw tooManyExpressions();
  }

  /** Characters of filters that are to be compiled. Throws ExpressionError when there are too many. */
  countFilters(characters: number): void {
    this.#filters += characters;
    if (this.#filters > DETOKENIZATION_FILTERS_MAX) {
      throw new ExpressionError(`More than ${DETOKENIZATION_FILTERS_MAX} characters of filters`);
    }
  }
}

/**
 * A text with its expressions replaced. A text that is one expression yields any JSON value (it may
 * share objects with the views, so do not change it), any other yields text; in text null is empty,
 * objects and lists are compact JSON. `tokens` has a view of each token that the text names. `made`
 * gets what each expression yielded, also within other text; of a whole token its data, which alone is
 * a secret. Throws ExpressionError.
 */
export type Insert = (
  tokens: ReadonlyMap<string, TokenView>,
  meter: Meter,
  made?: unknown[],
) => unknown;
type Part = string | Insert;

const WHOLE_TOKEN_PREFIX = 'token:';

/** At an end of an id other white space than ours, or anywhere a character without width. */
const UNSEEN = /^\s|\s$|\p{Cf}/u;

/** A meter of all that one request has injected. */
export const detokenizationMeter = (): Meter => new Meter(DETOKENIZATION_OUTPUT_MAX);

/**
 * `undefined` for a text without expressions. Tells `named` what it names. Throws ExpressionError for
 * braces without partner, braces inside braces, tags, what cannot be a token id, filters that are not
 * of the language, and too many expressions. Texts are not cached, they may hold what must not linger;
 * their filters are, by `compileTemplate`.
 */
export function compileDetokenization(source: string, named: NamedTokens): Insert | undefined {
  if (!hasExpression(source)) return undefined;
  const parts = compileParts(source, named);
  let expressions = 0;
  for (const part of parts) if (typeof part === 'function') expressions += 1;
  if (expressions === 0) return undefined;
  named.count(expressions);
  const [only] = parts;
  if (parts.length === 1 && typeof only === 'function') {
    return (tokens, meter, made) => {
      const before = meter.outputLeft;
      return counted(only(tokens, meter, made), before, meter);
    };
  }
  return (tokens, meter, made) => {
    let text = '';
    for (const part of parts) {
      const before = meter.outputLeft;
      text += typeof part === 'string' ? part : textOf(part(tokens, meter, made), before, meter);
    }
    return text;
  };
}

/** Too much for one request, be it in one text or in many. */
export function tooManyExpressions(): ExpressionError {
  return new ExpressionError(`More than ${DETOKENIZATION_EXPRESSIONS_MAX} expressions`);
}

function compileParts(source: string, named: NamedTokens): Part[] {
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
    parts.push(compilePlaceholder(source.slice(open + 2, close), open, named));
    // Texts and expressions may alternate.
    if (parts.length > 2 * DETOKENIZATION_EXPRESSIONS_MAX + 1) throw tooManyExpressions();
    index = close + 2;
  }
}

/** `inside` is what stands between the braces, which open at `open`. */
function compilePlaceholder(inside: string, open: number, named: NamedTokens): Part {
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
  named.add(tokenId, isWhole);
  const variable = isWhole ? 'token' : 'data';
  const filters = pipe < 0 ? '' : inside.slice(pipe);
  named.countFilters(filters.length);
  // From an offset in the template that is compiled to the one in the source.
  const place = { shift: open + pipe - variable.length, end: open + 2 + inside.length };
  const template = compileAt(place, `{{${variable}${filters} }}`);
  return (tokens, meter, made) => {
    const view = tokens.get(tokenId);
    if (view === undefined) throw new Error('a token that was not read');
    try {
      const value = template.evaluate(isWhole ? { token: view.token } : { data: view.data }, meter);
      made?.push(isWhole && value === view.token ? view.data : value);
      return value;
    } catch (error) {
      throw relocated(error, place);
    }
  };
}

function compileAt(place: Place, source: string): Template {
  try {
    return compileTemplate(source);
  } catch (error) {
    throw relocated(error, place);
  }
}

/** The position of an error moves by `shift`, and lies not behind `end`. */
interface Place {
  readonly shift: number;
  readonly end: number;
}

function relocated(error: unknown, { shift, end }: Place): unknown {
  if (!(error instanceof ExpressionError) || error.position === undefined) return error;
  return new ExpressionError(error.problem, { position: Math.min(error.position + shift, end) });
}

/**
 * Counts the JSON text that a value will become: a list of long numbers is longer than it seems.
 * `before`: the output that was left before the value was made.
 */
function counted<T>(value: T, before: number, meter: Meter): T {
  meter.emit(Math.max(0, stringifyJson(value).length - (before - meter.outputLeft)));
  return value;
}

/** Of a value within other text. */
function textOf(value: unknown, before: number, meter: Meter): string {
  const isTree = typeof value === 'object' && value !== null;
  return counted(isTree ? stringifyJson(value) : toText(value), before, meter);
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
