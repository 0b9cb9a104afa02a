/**
 * Comparison and length of JSON values for JSONPath filters (RFC 9535 sections 2.3.5.2.2 and 2.4.4).
 * Own members only; what a comparison of large values costs is counted on the meter.
 */
import { countCharacters } from './code-points.ts';
import type { Meter } from './meter.ts';
import { isObject } from './values.ts';

/** The result of a query that found nothing, where a value is needed. */
export const NOTHING = Symbol('nothing');

/** Characters that are compared in the time of one step. */
const CHARACTERS_PER_STEP = 16;

/** Items, members or characters; NOTHING for other values. */
export function lengthOf(value: unknown, meter: Meter): unknown {
  if (Array.isArray(value)) return value.length;
  if (typeof value === 'string') {
    meter.work(value.length);
    return countCharacters(value);
  }
  if (!isObject(value)) return NOTHING;
  const names = Object.keys(value);
  meter.work(names.length);
  return names.length;
}

export type Compare = (left: unknown, right: unknown, meter: Meter) => boolean;

function chargeTexts(left: string, right: string, meter: Meter): void {
  meter.work(Math.ceil(Math.min(left.length, right.length) / CHARACTERS_PER_STEP));
}

/** Only numbers and texts have an order, each among themselves. */
function isLess(left: unknown, right: unknown, meter: Meter): boolean {
  if (typeof left === 'number' && typeof right === 'number') return left < right;
  if (typeof left !== 'string' || typeof right !== 'string') return false;
  chargeTexts(left, right, meter);
  return left < right;
}

function isEqual(left: unknown, right: unknown, meter: Meter): boolean {
  meter.work(1);
  if (typeof left === 'string' && typeof right === 'string') {
    chargeTexts(left, right, meter);
    return left === right;
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    return (
      left.length === right.length &&
      left.every((item, index) => isEqual(item, right[index], meter))
    );
  }
  if (!isObject(left) || !isObject(right)) return left === right;
  const names = Object.keys(left);
  meter.work(names.length);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && isEqual(left[name], right[name], meter))
  );
}

/** The operators of RFC 9535. */
export const COMPARISONS: ReadonlyMap<string, Compare> = new Map<string, Compare>([
  ['==', isEqual],
  ['!=', (left, right, meter) => !isEqual(left, right, meter)],
  ['<', isLess],
  ['>', (left, right, meter) => isLess(right, left, meter)],
  ['<=', (left, right, meter) => isLess(left, right, meter) || isEqual(left, right, meter)],
  ['>=', (left, right, meter) => isLess(right, left, meter) || isEqual(left, right, meter)],
]);
