/** Filters that know card numbers and card data: `card_mask`, `card_bin`, `card_exp`. */
import { indexAfter } from '../code-points.ts';
import { ExpressionError } from '../expression-error.ts';
import { isObject, parseDecimal } from '../values.ts';
import { character, type Filter, filter, flag, inputText, optional, text } from './filter.ts';
import { MASK_CHARACTER, maskAll, maskSpan } from './masking.ts';

/** Numbers of 16 digits and more have an 8-digit BIN since ISO/IEC 7812-1:2017, shorter ones 6. */
const LONG_NUMBER_DIGITS = 16;
const LONG_BIN = 8;
const SHORT_BIN = 6;

const LAST_DIGITS = 4;

export function isDigitAt(value: string, index: number): boolean {
  const code = value.charCodeAt(index);
  return code >= 0x30 && code <= 0x39;
}

/** Indexes of the ASCII digits of `value`. */
export function digitIndexes(value: string): number[] {
  const indexes: number[] = [];
  for (let index = 0; index < value.length; index += 1) {
    if (isDigitAt(value, index)) indexes.push(index);
  }
  return indexes;
}

export function binLength(digits: number): number {
  return digits < LONG_NUMBER_DIGITS ? SHORT_BIN : LONG_BIN;
}

/** The span of `value` between its BIN and its last four digits, as far as these are shown. */
export function hiddenSpan(
  value: string,
  digits: readonly number[],
  bin: boolean,
  last4: boolean,
): { start: number; end: number } {
  const shownFirst = bin ? binLength(digits.length) : 0;
  const lastShown = shownFirst === 0 ? -1 : (digits[shownFirst - 1] ?? value.length);
  const end = last4 ? (digits.at(-LAST_DIGITS) ?? 0) : value.length;
  return { start: lastShown + 1, end };
}

/** If everything would be shown, everything is masked instead. */
const cardMask = filter(
  [
    optional(flag, false),
    optional(flag, false),
    optional(character, MASK_CHARACTER),
    optional(text, ''),
  ],
  (bin, last4, mask, preserved) => (input, meter) => {
    if (input === null) return null;
    const value = inputText(input, meter);
    meter.reserve(value.length * mask.length);
    const { start, end } = hiddenSpan(value, digitIndexes(value), bin, last4);
    if (start >= end) return maskAll(value, mask);
    const middle = maskSpan(value, start, end, mask, preserved);
    const result = value.slice(0, start) + middle + value.slice(end);
    return result === value ? maskAll(value, mask) : result;
  },
);

/** The first 6 or 8 characters without the separator; how many is decided by the digits. */
const cardBin = filter([optional(text, '')], (separator) => (input, meter) => {
  if (input === null) return null;
  const value = inputText(input, meter);
  meter.reserve(value.length);
  const number = separator === '' ? value : value.replaceAll(separator, '');
  return number.slice(0, indexAfter(number, 0, binLength(digitIndexes(number).length)));
});

interface Expiration {
  readonly month: string;
  readonly year: string;
}

const EXPIRATION_FORMATS: ReadonlyMap<string, (exp: Expiration) => string> = new Map([
  ['MM', ({ month }: Expiration) => month],
  ['YYYY', ({ year }: Expiration) => year],
  ['MMYY', ({ month, year }: Expiration) => month + year.slice(2)],
  ['MM/YY', ({ month, year }: Expiration) => `${month}/${year.slice(2)}`],
  ['MM/YYYY', ({ month, year }: Expiration) => `${month}/${year}`],
  ['MM_YYYY', ({ month, year }: Expiration) => `${month}_${year}`],
  ['MM-YYYY', ({ month, year }: Expiration) => `${month}-${year}`],
  ['YYYY-MM', ({ month, year }: Expiration) => `${year}-${month}`],
  ['YYYY/MM', ({ month, year }: Expiration) => `${year}/${month}`],
]);

function wholeNumber(value: unknown, min: number, max: number): number {
  const number = typeof value === 'string' ? parseDecimal(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < min || number > max) {
    throw new ExpressionError('The card has no valid expiration date');
  }
  return number;
}

/** Of a card object; null when there is no card or no expiration date on it. */
function readExpiration(card: unknown): Expiration | undefined {
  if (card === null) return undefined;
  if (!isObject(card)) throw new ExpressionError('A card object is needed');
  const [month, year] = ['expiration_month', 'expiration_year'].map((name) =>
    Object.hasOwn(card, name) ? (card[name] ?? null) : null,
  );
  if (month === null && year === null) return undefined;
  return {
    month: String(wholeNumber(month, 1, 12)).padStart(2, '0'),
    year: String(wholeNumber(year, 1000, 9999)),
  };
}

const cardExp = filter([text], (name) => {
  const format = EXPIRATION_FORMATS.get(name);
  if (format === undefined) throw new ExpressionError('Unknown expiration date format');
  return (input) => {
    const expiration = readExpiration(input);
    return expiration === undefined ? null : format(expiration);
  };
});

export const CARD_FILTERS: Readonly<Record<string, Filter>> = {
  card_mask: cardMask,
  card_bin: cardBin,
  card_exp: cardExp,
};
