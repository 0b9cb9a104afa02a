/**
 * The filters that show a part of a value: `reveal`, `reveal_last`, `last4`. When in doubt they
 * show less: a wrong argument is an error, never the clear value. Null stays null.
 */
import { countCharacters, indexAfter, indexOfLast, unitsAt } from '../code-points.ts';
import {
  character,
  count,
  type Filter,
  filter,
  inputText,
  optional,
  plain,
  text,
} from './filter.ts';

export const MASK_CHARACTER = 'X';

/** `reveal_last` keeps the dashes of social security and card numbers. */
const SEPARATOR = '-';

/** One mask character for each character between two indexes, except those of `preserved`. */
export function maskSpan(
  value: string,
  from: number,
  to: number,
  mask: string,
  preserved: string,
): string {
  let out = '';
  let run = 0;
  for (let index = from; index < to; ) {
    const units = unitsAt(value, index);
    const shown = preserved !== '' && preserved.includes(value.slice(index, index + units));
    if (shown) {
      out += mask.repeat(run) + value.slice(index, index + units);
      run = 0;
    } else {
      run += 1;
    }
    index += units;
  }
  return out + mask.repeat(run);
}

/** One mask character for every character. */
export function maskAll(value: string, mask: string): string {
  return mask.repeat(countCharacters(value));
}

/** Masks all but the last `length` characters; a value of at most that length is returned whole. */
const revealLast = filter(
  [count, optional(character, MASK_CHARACTER)],
  (length, mask) => (input, meter) => {
    if (input === null) return null;
    const value = inputText(input, meter);
    const start = indexOfLast(value, length);
    meter.reserve(value.length * mask.length);
    return maskSpan(value, 0, start, mask, SEPARATOR) + value.slice(start);
  },
);

/**
 * Shows `first` and `last` characters and every preserved one. All is masked when that would leave
 * nothing hidden.
 */
const reveal = filter(
  [optional(count, 0), optional(count, 0), optional(character, MASK_CHARACTER), optional(text, '')],
  (first, last, mask, preserved) => (input, meter) => {
    if (input === null) return null;
    const value = inputText(input, meter);
    meter.reserve(value.length * mask.length);
    const start = indexAfter(value, 0, first);
    const end = indexOfLast(value, last);
    if (start >= end) return maskAll(value, mask);
    const middle = maskSpan(value, start, end, mask, preserved);
    const result = value.slice(0, start) + middle + value.slice(end);
    return result === value ? maskAll(value, mask) : result;
  },
);

/** The last 4 characters; a shorter value is returned whole. */
const last4 = plain((input, meter) => {
  if (input === null) return null;
  const value = inputText(input, meter);
  return value.slice(indexOfLast(value, 4));
});

export const MASKING_FILTERS: Readonly<Record<string, Filter>> = {
  reveal_last: revealLast,
  reveal,
  last4,
};
