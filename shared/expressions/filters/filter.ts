/**
 * What a filter is: typed parameters, and a function that binds arguments. Literal arguments are
 * checked once, when the template is compiled; a wrong one is an error before any data is read.
 */
import { isOneCharacter } from '../code-points.ts';
import { ExpressionError } from '../expression-error.ts';
import type { Meter } from '../meter.ts';
import { parseDecimal, toText } from '../values.ts';

/** Characters that a text search compares in the time of one unit of work. */
const COMPARISONS_PER_UNIT = 32;

/** A filter with its arguments: input value to output value. Throws ExpressionError. */
export type BoundFilter = (input: unknown, meter: Meter) => unknown;

/** Reads one argument; `undefined` from `read` means that it has the wrong type. */
export interface Parameter<T> {
  /** What an error says it must be. */
  readonly wanted: string;
  readonly read: (argument: unknown) => T | undefined;
  /** Used when the argument is absent; a parameter without it is required. */
  readonly fallback?: T;
  /** The argument must be written in the source, because binding it is costly. */
  readonly literal?: true;
}

export interface Filter {
  readonly parameters: readonly Parameter<unknown>[];
  readonly bind: (values: readonly unknown[]) => BoundFilter;
  /** Position of a parameter that is given by name (`allow_false: true`). */
  readonly named?: Readonly<Record<string, number>>;
  /** Bytes must still be encoded, JSON text must not be changed any more. */
  readonly place?: 'last' | 'not_last';
}

type ValuesOf<P extends readonly Parameter<unknown>[]> = {
  [K in keyof P]: P[K] extends Parameter<infer T> ? T : never;
};

type FilterOptions = Pick<Filter, 'named' | 'place'>;

/** A filter from its parameters and a function of their values. */
export function filter<const P extends readonly Parameter<unknown>[]>(
  parameters: P,
  bind: (...values: ValuesOf<P>) => BoundFilter,
  options: FilterOptions = {},
): Filter {
  return {
    ...options,
    parameters,
    bind: (values) => bind(...(values as unknown as ValuesOf<P>)),
  };
}

/** A filter without parameters. */
export function plain(apply: BoundFilter): Filter {
  return { parameters: [], bind: () => apply };
}

/** A filter without parameters from text to text of at most the same order of length. */
export function textFilter(apply: (text: string) => string): Filter {
  return plain((input, meter) => {
    const text = toText(input);
    meter.reserve(text.length);
    const result = apply(text);
    meter.reserve(result.length);
    return result;
  });
}

/** The input as text, counted as read. */
export function inputText(input: unknown, meter: Meter): string {
  const text = toText(input);
  meter.work(text.length);
  return text;
}

/**
 * Counts a search of `pattern`, before it is made. A search may compare every character of the
 * pattern at every position: measured 86 s for a pattern of 500 KB in 1 MB (`lastIndexOf`).
 */
export function chargeSearch(value: string, pattern: string, meter: Meter): void {
  meter.work(Math.ceil((value.length * pattern.length) / COMPARISONS_PER_UNIT));
}

/** The values of a call, in the order of the parameters. `given` holds undefined for absent ones. */
export function readArguments(filter: Filter, given: readonly unknown[]): unknown[] {
  if (given.length > filter.parameters.length) {
    throw new ExpressionError(`The filter takes at most ${filter.parameters.length} arguments`);
  }
  return filter.parameters.map((parameter, index) => {
    const argument = given[index];
    if (argument === undefined) {
      if (!('fallback' in parameter)) {
        throw new ExpressionError(`Argument ${index + 1} of the filter is missing`);
      }
      return parameter.fallback;
    }
    const value = parameter.read(argument);
    if (value === undefined) {
      throw new ExpressionError(`Argument ${index + 1} of the filter must be ${parameter.wanted}`);
    }
    return value;
  });
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value !== 'object';
}

/** Any scalar, as text; null is the empty text, as in Liquid. */
export const text: Parameter<string> = {
  wanted: 'a text',
  read: (value) => (isScalar(value) ? toText(value) : undefined),
};

/** A quoted text in the source. */
export const literalText: Parameter<string> = {
  wanted: 'a quoted text',
  read: (value) => (typeof value === 'string' ? value : undefined),
  literal: true,
};

/** A whole number of characters or items, 0 or more. Texts with digits are not numbers here. */
export const count: Parameter<number> = {
  wanted: 'a whole number, 0 or more',
  read: (value) => (isWhole(value) && value >= 0 ? value : undefined),
};

export const integer: Parameter<number> = {
  wanted: 'a whole number',
  read: (value) => (isWhole(value) ? value : undefined),
};

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value);
}

/** A number, or the text of one; null is 0, as in Liquid's math filters. */
export const number: Parameter<number> = { wanted: 'a number', read: readNumber };

/** The number of a scalar, or undefined. */
export function readNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'string') return parseDecimal(value);
  return value === null ? 0 : undefined;
}

/** A boolean; the documented examples write `'true'` and `'false'` in quotes. */
export const flag: Parameter<boolean> = {
  wanted: 'true or false',
  read: (value) => {
    if (typeof value === 'boolean') return value;
    if (value === 'true') return true;
    return value === 'false' ? false : undefined;
  },
};

/** Exactly one character. */
export const character: Parameter<string> = {
  wanted: 'one character',
  read: (value) => (typeof value === 'string' && isOneCharacter(value) ? value : undefined),
};

/** Any value. */
export const anything: Parameter<unknown> = { wanted: 'a value', read: (value) => value };

/** The same parameter, optional. */
export function optional<T>(parameter: Parameter<T>, fallback: T): Parameter<T> {
  return { ...parameter, fallback };
}
