/**
 * Detokenizes the texts of a body: all of them compiled before anything is read, all tokens read at
 * once, all values put in under one limit. Nothing that was put in is looked at again.
 */
import { fieldError } from '../../shared/errors.ts';
import {
  compileDetokenization,
  detokenizationMeter,
  type Insert,
  NamedTokens,
  type TokensInUse,
  type TokenView,
} from '../../shared/expressions/detokenization.ts';
import { ExpressionError } from '../../shared/expressions/expression-error.ts';

/** In place of a value: the text stays as it is. */
export const KEPT: unique symbol = Symbol('kept');

/** The texts of a body that hold `{{`, in order, and the body with values in their place. */
export interface ExpressionTexts {
  /** Decoded. */
  readonly texts: readonly string[];
  /** The dotted path of a text, for errors. */
  pathOf(index: number): string;
  /** A value (or `KEPT`) for each of the texts; values are JSON values. */
  splice(values: readonly unknown[]): Buffer;
}

export interface TokenAccess {
  /** Asked when the first token is named, before anything is compiled: throws for who may use none. */
  requireAny(): void;
  /** Reads what expressions see of the tokens, by id. */
  readViews(tokens: TokensInUse): Promise<ReadonlyMap<string, TokenView>>;
}

export interface DetokenizedBody {
  readonly body: Buffer;
  /** By token id. */
  readonly views: ReadonlyMap<string, TokenView>;
  /** What each expression yielded; of a whole token its data. */
  readonly made: readonly unknown[];
}

/**
 * `undefined` when no text is an expression after all. Throws 400 at the path of a text that is
 * malformed, and what `access` throws.
 */
export async function detokenizeTexts(
  found: ExpressionTexts,
  access: TokenAccess,
): Promise<DetokenizedBody | undefined> {
  const named = new NamedTokens(() => access.requireAny());
  const compiled = compileAll(found, named);
  if (named.isEmpty) return undefined;
  const views = await access.readViews(named);
  const made: unknown[] = [];
  const values = evaluateAll(found, compiled, views, made);
  return { body: found.splice(values), views, made };
}

function compileAll(found: ExpressionTexts, named: NamedTokens): (Insert | undefined)[] {
  const compiled: (Insert | undefined)[] = [];
  try {
    for (const source of found.texts) {
      const insert = compileDetokenization(source, named);
      // A text that turns out to have none has cost as much.
      if (insert === undefined) named.count(1);
      compiled.push(insert);
    }
  } catch (error) {
    throw located(error, found, compiled.length);
  }
  return compiled;
}

function evaluateAll(
  found: ExpressionTexts,
  compiled: readonly (Insert | undefined)[],
  views: ReadonlyMap<string, TokenView>,
  made: unknown[],
): unknown[] {
  const meter = detokenizationMeter();
  const values: unknown[] = [];
  try {
    for (const insert of compiled) {
      values.push(insert === undefined ? KEPT : insert(views, meter, made));
    }
  } catch (error) {
    throw located(error, found, values.length);
  }
  return values;
}

/** An expression's error becomes 400 at the path of its text. */
function located(error: unknown, found: ExpressionTexts, index: number): unknown {
  if (!(error instanceof ExpressionError)) return error;
  return fieldError(found.pathOf(index), error.message);
}
