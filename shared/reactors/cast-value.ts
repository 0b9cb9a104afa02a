/** Casts to the types that formulas declare, for configuration and arguments alike (design section 12). */
import type { ValueType } from '../api/reactor-formulas.ts';
import { parseDecimal } from '../expressions/values.ts';

export type Scalar = string | number | boolean;

/**
 * `value` as a value of `type`, or `undefined` when it cannot be one. To a number: a JSON number or
 * its text, when a double holds it exactly. To a boolean: itself, or `true` and `false` in any case.
 * To a string: any scalar. Objects, lists and null are nothing of these.
 */
export function castValue(type: ValueType, value: unknown): Scalar | undefined {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
    return undefined;
  }
  switch (type) {
    case 'string':
      return String(value);
    case 'number':
      return castNumber(value);
    case 'boolean':
      return castBoolean(value);
  }
}

function castNumber(value: Scalar): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? parseDecimal(value) : undefined;
}

function castBoolean(value: Scalar): boolean | undefined {
  if (typeof value === 'boolean') return value;
  // The length first: no lower case of a megabyte.
  const word = typeof value === 'string' && value.length <= 5 ? value.toLowerCase() : '';
  if (word === 'true') return true;
  return word === 'false' ? false : undefined;
}
