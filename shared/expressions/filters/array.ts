/**
 * Liquid's list filters. A scalar or object input is a list of one, null an empty list. Members of
 * items are read as in paths: own members only.
 */
import { countCharacters, indexAfter, indexOfLast, unitsAt } from '../code-points.ts';
import { ExpressionError } from '../expression-error.ts';
import type { Meter } from '../meter.ts';
import { isBytes, toText } from '../values.ts';
import {
  anything,
  chargeSearch,
  count,
  type Filter,
  filter,
  inputText,
  integer,
  optional,
  plain,
  text,
} from './filter.ts';

/** The input as list, counted as read. */
export function toList(input: unknown, meter: Meter): readonly unknown[] {
  if (isBytes(input)) throw new ExpressionError('Bytes must be encoded first');
  if (input === null || input === undefined) return [];
  if (!Array.isArray(input)) return [input];
  meter.work(input.length);
  return input;
}

const join = filter([optional(text, ' ')], (separator) => (input, meter) => {
  const texts = toList(input, meter).map(toText);
  let length = separator.length * Math.max(0, texts.length - 1);
  for (const item of texts) length += item.length;
  meter.reserve(length);
  return texts.join(separator);
});

function splitCharacters(value: string): string[] {
  const list: string[] = [];
  for (let index = 0; index < value.length; ) {
    const end = index + unitsAt(value, index);
    list.push(value.slice(index, end));
    index = end;
  }
  return list;
}

/** Empty texts at the end are dropped, as in Ruby. */
const split = filter([text], (separator) => (input, meter) => {
  const value = inputText(input, meter);
  meter.reserve(value.length);
  chargeSearch(value, separator, meter);
  const list = separator === '' ? splitCharacters(value) : value.split(separator);
  while (list.length > 0 && list.at(-1) === '') list.pop();
  return list;
});

const first = plain((input) => {
  if (typeof input === 'string') return input.slice(0, indexAfter(input, 0, 1));
  return Array.isArray(input) ? (input[0] ?? null) : null;
});

const last = plain((input) => {
  if (typeof input === 'string') return input.slice(indexOfLast(input, 1));
  return Array.isArray(input) ? (input.at(-1) ?? null) : null;
});

const size = plain((input, meter) => {
  if (Array.isArray(input)) return input.length;
  return typeof input === 'string' ? countCharacters(inputText(input, meter)) : 0;
});

/** A part of a text or list; a negative begin counts from the end, before the start is empty. */
const slice = filter([integer, optional(count, 1)], (begin, length) => (input, meter) => {
  if (Array.isArray(input)) {
    const from = begin < 0 ? input.length + begin : begin;
    meter.reserve(Math.min(length, input.length));
    return from < 0 ? [] : input.slice(from, from + length);
  }
  const value = inputText(input, meter);
  const from = begin < 0 ? countCharacters(value) + begin : begin;
  if (from < 0) return '';
  const start = indexAfter(value, 0, from);
  return value.slice(start, indexAfter(value, start, length));
});

const reverse = plain((input, meter) => {
  const list = toList(input, meter);
  meter.reserve(list.length);
  return list.toReversed();
});

const compact = plain((input, meter) => {
  return toList(input, meter).filter((item) => item !== null && item !== undefined);
});

/** Equal scalars once; objects and lists are each their own. */
const uniq = plain((input, meter) => [...new Set(toList(input, meter))]);

const concat = filter([anything], (other) => {
  if (!Array.isArray(other)) throw new ExpressionError('Argument 1 of the filter must be a list');
  return (input, meter) => {
    const list = toList(input, meter);
    meter.reserve(list.length + other.length);
    return list.concat(other);
  };
});

export const ARRAY_FILTERS: Readonly<Record<string, Filter>> = {
  join,
  split,
  first,
  last,
  size,
  slice,
  reverse,
  compact,
  uniq,
  concat,
};
