/**
 * Compiles a JSON body whose texts hold detokenization expressions: all texts in values, at any
 * depth, in one pass. Names of members are never replaced, nor is anything read twice.
 */
import { itemPath, memberPath } from '../json-member-path.ts';
import { hasExpression } from './compile.ts';
import {
  compileDetokenization,
  detokenizationMeter,
  type Insert,
  NamedTokens,
  type TokensInUse,
  type TokenView,
} from './detokenization.ts';
import { ExpressionError } from './expression-error.ts';
import type { Meter } from './meter.ts';

/** Without tokens: a body without expressions. */
export interface DetokenizationBody extends TokensInUse {
  /**
   * The body with its expressions replaced. `tokens` has a view of each of `tokenIds`. The result
   * shares what has no expressions with the body, and objects with the views: do not change it.
   * `made` gets what each expression yielded. Throws ExpressionError with the path of the member.
   */
  evaluate(tokens: ReadonlyMap<string, TokenView>, made?: unknown[], meter?: Meter): unknown;
}

/**
 * `path` is what errors call the body; members are named below it, and a body that is one text is
 * `body` when `path` is empty. Throws ExpressionError with the path of the first text that is
 * malformed. The body must not be deeper than `parseJson` lets it be.
 */
export function compileDetokenizationBody(body: unknown, path = ''): DetokenizationBody {
  const named = new NamedTokens();
  const replace = mayHoldExpressions(body) ? compileNode(body, path, named) : undefined;
  return {
    tokenIds: named.tokenIds,
    usesWhole: named.usesWhole,
    evaluate: (tokens, made, meter = detokenizationMeter()) =>
      replace === undefined ? body : replace(tokens, meter, made),
  };
}

/** Asked before a path is made: a body may have a million numbers. */
function mayHoldExpressions(node: unknown): boolean {
  return typeof node === 'string' ? hasExpression(node) : typeof node === 'object' && node !== null;
}

/** `undefined` for a part of the body in which nothing is to be replaced. */
function compileNode(node: unknown, path: string, named: NamedTokens): Insert | undefined {
  if (typeof node === 'string') return compileText(node, path === '' ? 'body' : path, named);
  if (Array.isArray(node)) return compileList(node, path, named);
  return compileObject(node as Record<string, unknown>, path, named);
}

function compileText(source: string, path: string, named: NamedTokens): Insert | undefined {
  return locate(path, () => {
    const insert = compileDetokenization(source, named);
    return insert && ((tokens, meter, made) => locate(path, () => insert(tokens, meter, made)));
  });
}

function compileList(list: unknown[], path: string, named: NamedTokens): Insert | undefined {
  const replaced: [number, Insert][] = [];
  list.forEach((item, index) => {
    if (!mayHoldExpressions(item)) return;
    const replace = compileNode(item, itemPath(path, index), named);
    if (replace !== undefined) replaced.push([index, replace]);
  });
  if (replaced.length === 0) return undefined;
  return (tokens, meter, made) => {
    const result = [...list];
    for (const [index, replace] of replaced) result[index] = replace(tokens, meter, made);
    return result;
  };
}

function compileObject(
  object: Record<string, unknown>,
  path: string,
  named: NamedTokens,
): Insert | undefined {
  const replaced: [string, Insert][] = [];
  for (const [name, item] of Object.entries(object)) {
    if (!mayHoldExpressions(item)) continue;
    const replace = compileNode(item, memberPath(path, name), named);
    if (replace !== undefined) replaced.push([name, replace]);
  }
  if (replaced.length === 0) return undefined;
  return (tokens, meter, made) => {
    // Spreading makes own members, so that one named `__proto__` is set as a member below.
    const result = { ...object };
    for (const [name, replace] of replaced) result[name] = replace(tokens, meter, made);
    return result;
  };
}

/** Runs `work`; its expression errors name the member at `path`. */
function locate<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof ExpressionError ? error.in(path) : error;
  }
}
