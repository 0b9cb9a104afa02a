/** Random test data that nobody has seen before, so that finding it anywhere means a leak. */
import { randomInt } from 'node:crypto';

export const randomDigits = (count: number): string =>
  Array.from({ length: count }, () => String(randomInt(10))).join('');

/** A card number of 16 digits that passes the Luhn check (ISO/IEC 7812-1 annex B). */
export function randomCardNumber(): string {
  const body = `4${randomDigits(14)}`;
  const sum = [...body].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 2 : 1);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return `${body}${(10 - (sum % 10)) % 10}`;
}
