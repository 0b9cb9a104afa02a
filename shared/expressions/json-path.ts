/**
 * JSONPath (RFC 9535): json-p3 parses, our own closures evaluate. They read own members only and
 * count every step on the meter, because a short query can ask for exponential work
 * (`$[*,*][*,*]…`). `match()` and `search()` are refused: they run regular expressions of the
 * caller, which can backtrack without end.
 */
import { JSONPathEnvironment, type JSONPathQuery, jsonpath, TokenKind } from 'json-p3';
import { ExpressionError } from './expression-error.ts';
import { COMPARISONS, lengthOf, NOTHING } from './json-path-compare.ts';
import type { Meter } from './meter.ts';
import { isObject } from './values.ts';

const { expressions } = jsonpath;
const { FilterSelector, IndexSelector, NameSelector, SliceSelector, WildcardSelector } =
  jsonpath.selectors;

type Selector = InstanceType<typeof jsonpath.JSONPathSelector>;
type Segment = JSONPathQuery['segments'][number];
type Syntax = InstanceType<typeof expressions.FilterExpression>;

interface Context {
  readonly root: unknown;
  readonly meter: Meter;
}

/** Appends what a selector finds below `value` to `found`. */
type Select = (value: unknown, context: Context, found: unknown[]) => void;

/** All values that a query finds, in order. */
type Query = (value: unknown, context: Context) => readonly unknown[];

/** Longest query: bounds the nesting of its parser and of ours. */
const QUERY_MAX = 1000;

/** Work of one step, which is more than reading a character. */
const STEP_WORK = 4;

function charge(context: Context, steps: number): void {
  context.meter.work(steps * STEP_WORK);
}

const environment = new JSONPathEnvironment({ strict: true });
environment.functionRegister.delete('match');
environment.functionRegister.delete('search');

/**
 * A compiled query: the one value it finds, null when it finds none. Throws when it finds several.
 * `source` is RFC 9535 without match() and search().
 */
export function compileJsonPath(source: string): (value: unknown, meter: Meter) => unknown {
  const parsed = parse(source);
  if (parsed.singularQuery()) return compileSingular(parsed);
  const query = compileQuery(parsed);
  return (value, meter) => {
    const found = query(value, { root: value, meter });
    if (found.length > 1) throw new ExpressionError('The JSONPath finds more than one value');
    return found[0] ?? null;
  };
}

function parse(source: string): JSONPathQuery {
  if (source.length > QUERY_MAX) {
    throw new ExpressionError(`A JSONPath has at most ${QUERY_MAX} characters`);
  }
  try {
    return environment.compile(source);
  } catch {
    // Not kept as cause: its message quotes the source. A RangeError of deep nesting ends here too.
    throw new ExpressionError('The JSONPath is not valid or uses match() or search()');
  }
}

/** Names and indexes only, the usual case: needs no lists, and costs no more than its own text. */
function compileSingular(query: JSONPathQuery): (value: unknown) => unknown {
  const selectors = query.segments.map((segment) => segment.selectors[0]);
  return (value) => {
    let found: unknown = value;
    for (const selector of selectors) {
      if (selector instanceof NameSelector) found = memberOf(found, selector.name);
      else if (selector instanceof IndexSelector) found = itemOf(found, selector.index);
    }
    return found ?? null;
  };
}

/** The own member of an object, or undefined. JSON has no undefined. */
function memberOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function itemOf(value: unknown, index: number): unknown {
  return Array.isArray(value) ? value.at(index) : undefined;
}

function compileQuery(query: JSONPathQuery): Query {
  const segments = query.segments.map(compileSegment);
  return (value, context) => {
    let values: readonly unknown[] = [value];
    for (const segment of segments) {
      const found: unknown[] = [];
      for (const item of values) segment(item, context, found);
      values = found;
    }
    return values;
  };
}

function compileSegment(segment: Segment): Select {
  const selectors = segment.selectors.map(compileSelector);
  const select: Select = (value, context, found) => {
    for (const selector of selectors) selector(value, context, found);
  };
  return segment.token.kind === TokenKind.DDOT ? descend(select) : select;
}

/** Depth first, each node before its children (RFC 9535 section 2.5.2). */
function descend(select: Select): Select {
  const visit: Select = (value, context, found) => {
    charge(context, 1);
    select(value, context, found);
    for (const child of children(value)) visit(child, context, found);
  };
  return visit;
}

function children(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value) : [];
}

function compileSelector(selector: Selector): Select {
  if (selector instanceof NameSelector) return selectName(selector.name);
  if (selector instanceof IndexSelector) return selectIndex(selector.index);
  if (selector instanceof SliceSelector) {
    return selectSlice(selector.start, selector.stop, selector.step ?? 1);
  }
  if (selector instanceof WildcardSelector) return selectAll;
  if (selector instanceof FilterSelector) return selectWhere(selector.expression);
  throw new ExpressionError('The JSONPath has an unknown selector');
}

function selectName(name: string): Select {
  return (value, context, found) => {
    charge(context, 1);
    const member = memberOf(value, name);
    if (member !== undefined) found.push(member);
  };
}

function selectIndex(index: number): Select {
  return (value, context, found) => {
    charge(context, 1);
    const item = itemOf(value, index);
    if (item !== undefined) found.push(item);
  };
}

const selectAll: Select = (value, context, found) => {
  const list = children(value);
  charge(context, 1 + list.length);
  for (const child of list) found.push(child);
};

/** Bounds of RFC 9535 section 2.3.4.2.2; a step of 0 selects nothing. */
function selectSlice(start: number | undefined, stop: number | undefined, step: number): Select {
  return (value, context, found) => {
    charge(context, 1);
    if (!Array.isArray(value) || step === 0) return;
    const size = value.length;
    const clamp = (bound: number, min: number, max: number): number =>
      Math.min(Math.max(bound < 0 ? size + bound : bound, min), max);
    const [min, max] = step > 0 ? [0, size] : [-1, size - 1];
    const first = start === undefined ? (step > 0 ? 0 : size - 1) : clamp(start, min, max);
    const end = stop === undefined ? (step > 0 ? size : -1) : clamp(stop, min, max);
    charge(context, Math.abs(end - first));
    for (let at = first; step > 0 ? at < end : at > end; at += step) found.push(value[at]);
  };
}

function selectWhere(expression: InstanceType<typeof FilterSelector>['expression']): Select {
  const matches = compileLogical(expression);
  return (value, context, found) => {
    const list = children(value);
    charge(context, 1 + list.length);
    for (const child of list) {
      if (matches(child, context)) found.push(child);
    }
  };
}

/*
 * The filter selector `[?@.price < 10]`, RFC 9535 section 2.3.5.
 */

type Evaluate<T> = (current: unknown, context: Context) => T;

/** An expression in the place of a test. */
function compileLogical(syntax: Syntax): Evaluate<boolean> {
  if (syntax instanceof expressions.LogicalExpression) return compileLogical(syntax.expression);
  if (syntax instanceof expressions.PrefixExpression) {
    const inner = compileLogical(syntax.right);
    return (current, context) => !inner(current, context);
  }
  if (syntax instanceof expressions.InfixExpression) return compileInfix(syntax);
  const nodes = compileNodes(syntax);
  return (current, context) => nodes(current, context).length > 0;
}

function compileInfix(syntax: InstanceType<typeof expressions.InfixExpression>): Evaluate<boolean> {
  if (syntax.operator === '&&' || syntax.operator === '||') {
    const left = compileLogical(syntax.left);
    const right = compileLogical(syntax.right);
    if (syntax.operator === '&&') return (at, context) => left(at, context) && right(at, context);
    return (at, context) => left(at, context) || right(at, context);
  }
  const compare = COMPARISONS.get(syntax.operator);
  if (compare === undefined) throw new ExpressionError('The JSONPath has an unknown operator');
  const left = compileValue(syntax.left);
  const right = compileValue(syntax.right);
  return (current, context) =>
    compare(left(current, context), right(current, context), context.meter);
}

/** A query whose nodes count, not their value. */
function compileNodes(syntax: Syntax | undefined): Evaluate<readonly unknown[]> {
  if (syntax instanceof expressions.RelativeQuery) return compileQuery(syntax.path);
  if (syntax instanceof expressions.RootQuery) {
    const query = compileQuery(syntax.path);
    return (_current, context) => query(context.root, context);
  }
  throw new ExpressionError('The JSONPath needs a query here');
}

function compileValue(syntax: Syntax | undefined): Evaluate<unknown> {
  if (syntax instanceof expressions.NullLiteral) return () => null;
  if (
    syntax instanceof expressions.BooleanLiteral ||
    syntax instanceof expressions.StringLiteral ||
    syntax instanceof expressions.NumberLiteral
  ) {
    const { value } = syntax;
    return () => value;
  }
  if (syntax instanceof expressions.FunctionExtension) return compileFunction(syntax);
  return onlyValue(compileNodes(syntax));
}

function onlyValue(nodes: Evaluate<readonly unknown[]>): Evaluate<unknown> {
  return (current, context) => {
    const found = nodes(current, context);
    return found.length === 1 ? found[0] : NOTHING;
  };
}

/** RFC 9535 section 2.4; the parser has checked the number and kind of the arguments. */
function compileFunction(
  syntax: InstanceType<typeof expressions.FunctionExtension>,
): Evaluate<unknown> {
  const [argument] = syntax.args;
  if (syntax.name === 'length') {
    const value = compileValue(argument);
    return (current, context) => lengthOf(value(current, context), context.meter);
  }
  const nodes = compileNodes(argument);
  if (syntax.name === 'count') return (current, context) => nodes(current, context).length;
  if (syntax.name === 'value') return onlyValue(nodes);
  throw new ExpressionError('The JSONPath has an unknown function');
}
