/**
 * Compiles templates to closures and keeps them. A template that is exactly one expression yields a
 * JSON value with its type; any other yields text. Inserted data is never read as a template again.
 */
import { LRUCache } from 'lru-cache';
import { ExpressionError } from './expression-error.ts';
import { compileCall, compileValue, type Scope } from './filter-call.ts';
import {
  CACHE_ENTRIES_MAX,
  CACHE_FORMULA_MAX,
  CACHE_LONG_FACTOR,
  CACHE_SOURCE_MAX,
  SOURCE_MAX,
} from './limits.ts';
import { Meter } from './meter.ts';
import { type Expression, parseTemplate } from './parser.ts';
import { isBytes, jsonLength, jsonText, toText } from './values.ts';

export interface Template {
  /** False for plain text, which evaluates to itself. */
  readonly hasExpressions: boolean;
  /**
   * The value: any JSON value when the source is one expression (it may share objects with the
   * scope, so do not change it), text otherwise. A missing path is null, in text it is empty;
   * objects and lists in text are compact JSON. Throws ExpressionError.
   */
  evaluate(scope: Scope, meter?: Meter): unknown;
}

interface CompiledTemplate extends Template {
  /** See ParsedTemplate; such a template must not be evaluated. */
  readonly trailingAt: number | undefined;
}

type Evaluate = (scope: Scope, meter: Meter) => unknown;

const cache = new LRUCache<string, CompiledTemplate>({
  max: CACHE_ENTRIES_MAX,
  maxSize: CACHE_SOURCE_MAX,
  sizeCalculation: (_template, { length }) =>
    length <= CACHE_FORMULA_MAX ? length : length * CACHE_LONG_FACTOR,
});

/** True when `source` must be compiled: it has a placeholder, or braces that are not balanced. */
export function hasExpression(source: string): boolean {
  return source.includes('{{') || source.includes('}}') || source.includes('{%');
}

/** Throws ExpressionError for a source that is not of the language. */
export function compileTemplate(source: string): Template {
  const template = compiled(source);
  if (template.trailingAt !== undefined) {
    throw new ExpressionError('Expected "|" or "}}"', { position: template.trailingAt });
  }
  return template;
}

/**
 * For a leaf of a mask, where text after a valid path is accepted: undefined then, and the leaf is
 * left out. Throws ExpressionError for any other source that is not of the language.
 */
export function compileMaskLeaf(source: string): Template | undefined {
  const template = compiled(source);
  return template.trailingAt === undefined ? template : undefined;
}

function compiled(source: string): CompiledTemplate {
  // Longer texts cannot be in the cache; looking would only hash them.
  const known = source.length > SOURCE_MAX ? undefined : cache.get(source);
  if (known !== undefined) return known;
  if (!hasExpression(source)) {
    return { hasExpressions: false, trailingAt: undefined, evaluate: () => source };
  }
  const { parts, trailingAt } = parseTemplate(source);
  const evaluate = compileParts(parts);
  const template: CompiledTemplate = {
    hasExpressions: true,
    trailingAt,
    evaluate: (scope, meter = new Meter()) => evaluate(scope, meter),
  };
  cache.set(source, template);
  return template;
}

function compileParts(parts: readonly (string | Expression)[]): Evaluate {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined && typeof only !== 'string') {
    const evaluate = compileExpression(only);
    return (scope, meter) => emitValue(evaluate(scope, meter), meter);
  }
  const evaluates = parts.map((part) =>
    typeof part === 'string' ? part : compileExpression(part),
  );
  return (scope, meter) => {
    let text = '';
    for (const part of evaluates) {
      const next = typeof part === 'string' ? part : valueText(part(scope, meter), meter);
      meter.emit(next.length);
      text += next;
    }
    return text;
  };
}

function emitValue(value: unknown, meter: Meter): unknown {
  if (typeof value === 'string') meter.emit(value.length);
  else if (isBytes(value)) return toText(value);
  else emitJson(value, meter);
  return value;
}

function emitJson(value: unknown, meter: Meter): void {
  const length = jsonLength(value, meter.outputLeft);
  meter.reserve(length);
  meter.emit(length);
}

function valueText(value: unknown, meter: Meter): string {
  if (typeof value === 'object' && value !== null && !isBytes(value)) return jsonText(value, meter);
  return toText(value);
}

function compileExpression(expression: Expression): Evaluate {
  const read = compileValue(expression.value);
  if (expression.filters.length === 0) return read;
  const last = expression.filters.length - 1;
  const filters = expression.filters.map((call, index) => compileCall(call, index === last));
  return (scope, meter) => {
    let value = read(scope);
    for (const apply of filters) value = apply(value, scope, meter);
    return value;
  };
}
