/** JSON values as the expression language sees them: to text, to number, to a size. No I/O. */
import { isExactNumber } from '../json-number.ts';
import { stringifyJson } from '../json-text.ts';
import { ExpressionError } from './expression-error.ts';
import type { Meter } from './meter.ts';

/** Longest text that is read as a number; longer ones cannot be exact. */
const NUMBER_TEXT_MAX = 400;

/** Plain decimal number: no `+`, no bare point, no spaces, no hex. Linear, nothing repeats nested. */
const DECIMAL = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/;

/** The text of a scalar; null is empty. Throws for objects, lists and bytes. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (isBytes(value)) throw new ExpressionError('Bytes must be encoded by to_base64 or to_base16');
  throw new ExpressionError('A text is needed, an object or a list is not');
}

export function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isBytes(value);
}

/**
 * The number that a decimal text says, or undefined when it is not one, or not exactly one (a
 * double would change it).
 */
export function parseDecimal(text: string): number | undefined {
  if (text.length > NUMBER_TEXT_MAX || !DECIMAL.test(text)) return undefined;
  return isExactNumber(text) ? Number(text) : undefined;
}

/** A lower bound of the length of compact JSON; stops soon after `max`. */
export function jsonLength(value: unknown, max: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 1;
  let length = 2;
  if (Array.isArray(value)) {
    for (const item of value) {
      length += 1 + jsonLength(item, max - length);
      if (length > max) return length;
    }
    return length;
  }
  for (const name of Object.keys(value)) {
    length += name.length + 4 + jsonLength(Reflect.get(value, name), max - length);
    if (length > max) return length;
  }
  return length;
}

/** Compact JSON of an object or list; refuses before it prints when that would be too long. */
export function jsonText(value: unknown, meter: Meter): string {
  meter.reserve(jsonLength(value, meter.outputLeft));
  return stringifyJson(value);
}
