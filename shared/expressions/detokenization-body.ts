/**
 * Compiles a JSON body whose texts hold detokenization expressions: all texts in values, at any
 * depth, in one pass. Names of members are never replaced, nor is anything read twice.
 */
import { itemPath, memberPath } from '../json-member-path.ts';
import { hasExpression } from './compile.ts';
import {
  compileDetokenization,
  detokenizationMeter,
  type TokenView,
  tooManyExpressions,
} from './detokenization.ts';
import { ExpressionError } from './expression-error.ts';
import { DETOKENIZATION_EXPRESSIONS_MAX } from './limits.ts';
import type { Meter } from './meter.ts';

export interface DetokenizationBody {
  /** Distinct, in order of appearance; empty for a body without expressions. */
  readonly tokenIds: readonly string[];
  /**
   * The body with its expressions replaced. `tokens` has a view of each of `tokenIds`. The result
   * shares what has no expressions with the body, and objects with the views: do not change it.
   * Throws ExpressionError with the path of the member.
   */
  evaluate(tokens: ReadonlyMap<string, TokenView>, meter?: Meter): unknown;
}

type Replace = (tokens: ReadonlyMap<string, TokenView>, meter: Meter) => unknown;

interface Found {
  readonly tokenIds: Set<string>;
  expressions: number;
}

/**
 * `path` is what errors call the body; members are named below it, and a body that is one text is
 * `body` when `path` is empty. Throws ExpressionError with the path of the first text that is
 * malformed. The body must not be deeper than `parseJson` lets it be.
 */
export function compileDetokenizationBody(body: unknown, path = ''): DetokenizationBody {
  const found: Found = { tokenIds: new Set(), expressions: 0 };
  const replace = mayHoldExpressions(body) ? compileNode(body, path, found) : undefined;
  return {
    tokenIds: [...found.tokenIds],
    evaluate: (tokens, meter = detokenizationMeter()) =>
      replace === undefined ? body : replace(tokens, meter),
  };
}

/** Asked before a path is made: a body may have a million numbers. */
function mayHoldExpressions(node: unknown): boolean {
  return typeof node === 'string' ? hasExpression(node) : typeof node === 'object' && node !== null;
}

/** `undefined` for a part of the body in which nothing is to be replaced. */
function compileNode(node: unknown, path: string, found: Found): Replace | undefined {
  if (typeof node === 'string') return compileText(node, path === '' ? 'body' : path, found);
  if (Array.isArray(node)) return compileList(node, path, found);
  return compileObject(node as Record<string, unknown>, path, found);
}

function compileText(source: string, path: string, found: Found): Replace | undefined {
  return locate(path, () => {
    const text = compileDetokenization(source);
    found.expressions += text.expressions;
    if (found.expressions > DETOKENIZATION_EXPRESSIONS_MAX) throw tooManyExpressions();
    if (text.expressions === 0) return undefined;
    for (const tokenId of text.tokenIds) found.tokenIds.add(tokenId);
    return (tokens, meter) => locate(path, () => text.evaluate(tokens, meter));
  });
}

function compileList(list: unknown[], path: string, found: Found): Replace | undefined {
  const replaced: [number, Replace][] = [];
  list.forEach((item, index) => {
    if (!mayHoldExpressions(item)) return;
    const replace = compileNode(item, itemPath(path, index), found);
    if (replace !== undefined) replaced.push([index, replace]);
  });
  if (replaced.length === 0) return undefined;
  return (tokens, meter) => {
    const result = [...list];
    for (const [index, replace] of replaced) result[index] = replace(tokens, meter);
    return result;
  };
}

function compileObject(
  object: Record<string, unknown>,
  path: string,
  found: Found,
): Replace | undefined {
  const replaced: [string, Replace][] = [];
  for (const [name, item] of Object.entries(object)) {
    if (!mayHoldExpressions(item)) continue;
    const replace = compileNode(item, memberPath(path, name), found);
    if (replace !== undefined) replaced.push([name, replace]);
  }
  if (replaced.length === 0) return undefined;
  return (tokens, meter) => {
    // Spreading makes own members, so that one named `__proto__` is set as a member below.
    const result = { ...object };
    for (const [name, replace] of replaced) result[name] = replace(tokens, meter);
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
