/**
 * Detokenizes the texts of a body: all of them compiled before anything is read, all tokens read at
 * once, all values put in under one limit. Nothing that was put in is looked at again.
 */
import { fieldError } from '../../shared/errors.ts';
import {
  compileDetokenization,
  type Detokenization,
  detokenizationMeter,
  type TokenView,
  tooManyExpressions,
} from '../../shared/expressions/detokenization.ts';
import { ExpressionError } from '../../shared/expressions/expression-error.ts';
import { DETOKENIZATION_EXPRESSIONS_MAX } from '../../shared/expressions/limits.ts';

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

/** Reads what expressions see of the tokens, by id; the ids are distinct. */
export type ReadViews = (tokenIds: readonly string[]) => Promise<ReadonlyMap<string, TokenView>>;

export interface DetokenizedBody {
  readonly body: Buffer;
  /** By token id. */
  readonly views: ReadonlyMap<string, TokenView>;
  /** Each as it was put in. */
  readonly values: readonly unknown[];
}

/**
 * `undefined` when no text is an expression after all. Throws 400 at the path of a text that is
 * malformed, and what `readViews` throws.
 */
export async function detokenizeTexts(
  found: ExpressionTexts,
  readViews: ReadViews,
): Promise<DetokenizedBody | undefined> {
  const compiled = compileAll(found);
  const tokenIds = new Set(compiled.flatMap(({ tokenIds: ids }) => ids));
  if (tokenIds.size === 0) return undefined;
  const views = await readViews([...tokenIds]);
  const meter = detokenizationMeter();
  const values = compiled.map((text, index) =>
    text.expressions === 0 ? KEPT : located(found, index, () => text.evaluate(views, meter)),
  );
  return { body: found.splice(values), views, values: values.filter((value) => value !== KEPT) };
}

function compileAll(found: ExpressionTexts): Detokenization[] {
  let expressions = 0;
  return found.texts.map((source, index) =>
    located(found, index, () => {
      const text = compileDetokenization(source);
      // A text that turns out to have none has cost as much.
      expressions += Math.max(1, text.expressions);
      if (expressions > DETOKENIZATION_EXPRESSIONS_MAX) throw tooManyExpressions();
      return text;
    }),
  );
}

/** Runs `work` on a text; its expression errors become 400 at the path of the text. */
function located<T>(found: ExpressionTexts, index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw fieldError(found.pathOf(index), error.message);
  }
}
