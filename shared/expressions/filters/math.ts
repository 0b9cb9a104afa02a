/** Liquid's math filters. Input is a number or the text of one; results are finite or an error. */
import { ExpressionError } from '../expression-error.ts';
import { type Filter, filter, integer, number, optional, plain, readNumber } from './filter.ts';

/** More decimal places than a double has make no difference. */
const ROUND_PLACES_MAX = 30;

function inputNumber(input: unknown): number {
  const value = readNumber(input ?? null);
  if (value === undefined) throw new ExpressionError('A number is needed');
  return value;
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new ExpressionError('The result is not a number');
  return value;
}

function ofOne(apply: (value: number) => number): Filter {
  return plain((input) => finite(apply(inputNumber(input))));
}

function ofTwo(apply: (value: number, other: number) => number): Filter {
  return filter([number], (other) => (input) => finite(apply(inputNumber(input), other)));
}

/** Moves the decimal point in the printed number, which does not round as a multiplication does. */
function shiftPoint(value: number, places: number): number {
  const [mantissa, power = '0'] = String(value).split('e');
  return Number(`${mantissa}e${Number(power) + places}`);
}

/** Half away from zero, judged on the printed decimal: `1.005 | round: 2` is 1.01. */
function roundTo(value: number, places: number): number {
  const scaled = shiftPoint(Math.abs(value), places);
  if (scaled > Number.MAX_SAFE_INTEGER) return value;
  const rounded = shiftPoint(Math.round(scaled), -places);
  return value < 0 ? -rounded : rounded;
}

const round = filter([optional(integer, 0)], (places) => {
  if (Math.abs(places) > ROUND_PLACES_MAX) {
    throw new ExpressionError('Argument 1 of the filter has too many decimal places');
  }
  return (input) => finite(roundTo(inputNumber(input), places));
});

export const MATH_FILTERS: Readonly<Record<string, Filter>> = {
  round,
  abs: ofOne(Math.abs),
  ceil: ofOne(Math.ceil),
  floor: ofOne(Math.floor),
  at_least: ofTwo(Math.max),
  at_most: ofTwo(Math.min),
  plus: ofTwo((value, other) => value + other),
  minus: ofTwo((value, other) => value - other),
  times: ofTwo((value, other) => value * other),
  divided_by: ofTwo((value, other) => value / other),
  /** The result has the sign of the divisor, as in Ruby. */
  modulo: ofTwo((value, other) => ((value % other) + other) % other),
};
