/**
 * Random stand-ins for a value, for use as token id. Randomness is cryptographic. An alias is never
 * the value itself: when nothing would be replaced, that is an error.
 */
import { randomInt } from 'node:crypto';
import { indexAfter, indexOfLast } from '../code-points.ts';
import { ExpressionError } from '../expression-error.ts';
import { toText } from '../values.ts';
import { digitIndexes, hiddenSpan } from './card.ts';
import { type BoundFilter, count, type Filter, filter, flag, optional } from './filter.ts';

/** Longest id: a longer value cannot become an alias, and randomness is not free. */
const ALIAS_MAX = 400;

/**
 * Tries until the random part differs from the original. One digit repeats itself with probability
 * 1/10, so 100 tries fail with 10^-100.
 */
const TRIES_MAX = 100;

const DIGITS = '0123456789';
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const ALPHANUMERICS = DIGITS + LETTERS;

const CARD_NUMBER = /^[0-9 -]*$/;
/** Letters and digits of every script: none of the original may stay. */
const LETTER = /^[\p{L}\p{M}]$/u;
const DIGIT = /^\p{N}$/u;

function randomOf(alphabet: string): string {
  return alphabet.charAt(randomInt(alphabet.length));
}

/** Replaces the characters of `value` between two indexes; the rest is shown. */
function replaceSpan(
  value: string,
  start: number,
  end: number,
  stand: (character: string) => string,
): string {
  if (start >= end) throw new ExpressionError('The value is not longer than its revealed part');
  const hidden = [...value.slice(start, end)];
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const alias = value.slice(0, start) + hidden.map(stand).join('') + value.slice(end);
    if (alias !== value) return alias;
  }
  throw new ExpressionError('The value has no character that can be replaced');
}

function aliasInput(input: unknown): string {
  const value = toText(input);
  if (value.length > ALIAS_MAX) throw new ExpressionError('The value is too long for an alias');
  return value;
}

/** Random digits in place of digits; spaces and dashes stay. */
const aliasCard = filter([optional(flag, false), optional(flag, false)], (bin, last4) => {
  return (input) => {
    if (input === null) return null;
    const value = aliasInput(input);
    if (!CARD_NUMBER.test(value)) throw new ExpressionError('A card number is needed');
    const { start, end } = hiddenSpan(value, digitIndexes(value), bin, last4);
    return replaceSpan(value, start, end, (character) =>
      DIGITS.includes(character) ? randomOf(DIGITS) : character,
    );
  };
});

function aliasWith(stand: (character: string) => string): Filter {
  return filter([optional(count, 0), optional(count, 0)], (first, last): BoundFilter => {
    return (input) => {
      if (input === null) return null;
      const value = aliasInput(input);
      return replaceSpan(value, indexAfter(value, 0, first), indexOfLast(value, last), stand);
    };
  });
}

function sameKind(character: string): string {
  if (LETTER.test(character)) return randomOf(LETTERS);
  return DIGIT.test(character) ? randomOf(DIGITS) : character;
}

export const ALIAS_FILTERS: Readonly<Record<string, Filter>> = {
  alias_card: aliasCard,
  alias_preserve_format: aliasWith(sameKind),
  alias_preserve_length: aliasWith(() => randomOf(ALPHANUMERICS)),
};
