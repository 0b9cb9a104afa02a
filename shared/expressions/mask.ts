/**
 * Masks: any JSON whose string leaves may be expressions over the token's data. A leaf that cannot
 * be evaluated is left out; it never falls back to clear data.
 */
import { compileMaskLeaf, hasExpression } from './compile.ts';
import { ExpressionError } from './expression-error.ts';
import type { Scope } from './filter-call.ts';
import { MASK_DEPTH_MAX, MASK_EXPRESSIONS_MAX } from './limits.ts';
import { Meter } from './meter.ts';
import { isObject } from './values.ts';

/**
 * Throws ExpressionError for a mask with a leaf that is not of the language; its `path` names the
 * leaf in dotted form below `path`, which names the mask itself. Text after a valid path
 * (`{{ data.number, reveal_last: 4 }}`) is accepted here; such a leaf evaluates to nothing.
 */
export function validateMask(mask: unknown, path = 'mask'): void {
  checkLeaves(mask, path, { expressions: 0 }, 0);
}

function checkLeaves(
  mask: unknown,
  path: string,
  counted: { expressions: number },
  depth: number,
): void {
  if (depth > MASK_DEPTH_MAX) throw new ExpressionError('The mask is nested too deep', { path });
  if (typeof mask === 'string') {
    checkLeaf(mask, path, counted);
  } else if (Array.isArray(mask)) {
    mask.forEach((item, index) => {
      checkLeaves(item, `${path}.${index}`, counted, depth + 1);
    });
  } else if (isObject(mask)) {
    for (const [name, item] of Object.entries(mask)) {
      checkLeaves(item, `${path}.${name}`, counted, depth + 1);
    }
  }
}

function checkLeaf(source: string, path: string, counted: { expressions: number }): void {
  if (!hasExpression(source)) return;
  counted.expressions += 1;
  if (counted.expressions > MASK_EXPRESSIONS_MAX) {
    throw new ExpressionError(`A mask has at most ${MASK_EXPRESSIONS_MAX} expressions`, { path });
  }
  try {
    compileMaskLeaf(source);
  } catch (error) {
    throw error instanceof ExpressionError ? error.in(path) : error;
  }
}

/**
 * The mask with its leaves evaluated; types are kept, and what is not an expression stays as it is.
 * A leaf that fails, or goes beyond the limit of all leaves together, is left out of its object and
 * null in a list; a mask that is one such leaf is undefined. Objects may be shared with the scope.
 */
export function evaluateMask(mask: unknown, scope: Scope, meter: Meter = new Meter()): unknown {
  if (typeof mask === 'string') return evaluateLeaf(mask, scope, meter);
  if (Array.isArray(mask)) return mask.map((item) => evaluateMask(item, scope, meter) ?? null);
  if (!isObject(mask)) return mask;
  const result: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(mask)) {
    const value = evaluateMask(item, scope, meter);
    if (value !== undefined) setMember(result, name, value);
  }
  return result;
}

function evaluateLeaf(source: string, scope: Scope, meter: Meter): unknown {
  if (!hasExpression(source)) return source;
  if (meter.exhausted) return undefined;
  try {
    return compileMaskLeaf(source)?.evaluate(scope, meter);
  } catch (error) {
    if (error instanceof ExpressionError) return undefined;
    throw error;
  }
}

/** Assigning `__proto__` would change the prototype instead of adding a member. */
function setMember(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    target[name] = value;
  }
}
