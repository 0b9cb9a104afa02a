/** Filters between JSON types: casts, `stringify`, padding, `default`. Null stays null. */
import { countCharacters } from '../code-points.ts';
import { ExpressionError } from '../expression-error.ts';
import type { Meter } from '../meter.ts';
import { isBytes, jsonText, parseDecimal, toText } from '../values.ts';
import {
  anything,
  type BoundFilter,
  character,
  count,
  type Filter,
  filter,
  flag,
  optional,
  plain,
} from './filter.ts';

const toBoolean = plain((input) => {
  if (input === null || typeof input === 'boolean') return input;
  const word = typeof input === 'string' && input.length <= 5 ? input.toLowerCase() : '';
  if (word === 'true') return true;
  if (word === 'false') return false;
  throw new ExpressionError('The value cannot be cast to a boolean');
});

const toNumber = plain((input) => {
  if (input === null || typeof input === 'number') return input;
  const value = typeof input === 'string' ? parseDecimal(input) : undefined;
  if (value === undefined) throw new ExpressionError('The value cannot be cast to a number');
  return value;
});

const castToString = plain((input) => {
  if (input === null || typeof input === 'string') return input;
  if (typeof input === 'object') {
    throw new ExpressionError('The value cannot be cast to a string');
  }
  return toText(input);
});

function refuseBytes(input: unknown): void {
  if (isBytes(input)) throw new ExpressionError('Bytes have no JSON form');
}

/** Compact JSON; a text is returned as it is, without quotes. */
const stringify = plain((input, meter) => {
  refuseBytes(input);
  if (input === null) return null;
  return typeof input === 'object' ? jsonText(input, meter) : toText(input);
});

/** Compact JSON of every value: texts are quoted and escaped, null is `null`. */
const jsonStringify: Filter = {
  ...plain((input, meter) => {
    refuseBytes(input);
    return jsonText(input, meter);
  }),
  place: 'last',
};

function pad(length: number, fill: string, join: (padding: string, text: string) => string) {
  return (input: unknown, meter: Meter): string | null => {
    if (input === null) return null;
    const value = toText(input);
    const missing = Math.max(0, length - countCharacters(value));
    meter.reserve(value.length + missing * fill.length);
    return join(fill.repeat(missing), value);
  };
}

const padLeft = filter([count, character], (length, fill): BoundFilter => {
  return pad(length, fill, (padding, value) => padding + value);
});

const padRight = filter([count, character], (length, fill): BoundFilter => {
  return pad(length, fill, (padding, value) => value + padding);
});

/** Liquid: in place of null, false, and an empty text or list; `allow_false: true` keeps false. */
const fallback = filter(
  [anything, optional(flag, false)],
  (other, allowFalse) => (input) => {
    if (typeof input === 'string' || Array.isArray(input)) return input.length > 0 ? input : other;
    if (input === false) return allowFalse ? false : other;
    return input ?? other;
  },
  { named: { allow_false: 1 } },
);

export const CAST_FILTERS: Readonly<Record<string, Filter>> = {
  to_boolean: toBoolean,
  to_number: toNumber,
  to_string: castToString,
  stringify,
  json_stringify: jsonStringify,
  pad_left: padLeft,
  pad_right: padRight,
  default: fallback,
};
