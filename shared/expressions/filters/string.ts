/** Liquid's string filters. Input is a scalar, read as text; null reads as the empty text. */
import { countCharacters, indexAfter, unitsAt } from '../code-points.ts';
import { count, type Filter, filter, inputText, optional, text, textFilter } from './filter.ts';

/** Liquid's defaults for `truncate` and `truncatewords`. */
const TRUNCATE_LENGTH = 50;
const TRUNCATE_WORDS = 15;
const ELLIPSIS = '...';

function capitalize(value: string): string {
  const rest = value.length === 0 ? 0 : unitsAt(value, 0);
  return value.slice(0, rest).toUpperCase() + value.slice(rest).toLowerCase();
}

const append = filter([text], (suffix) => (input, meter) => {
  const value = inputText(input, meter);
  meter.reserve(value.length + suffix.length);
  return value + suffix;
});

const prepend = filter([text], (prefix) => (input, meter) => {
  const value = inputText(input, meter);
  meter.reserve(value.length + prefix.length);
  return prefix + value;
});

/** `truncate: 20, '…'`: at most 20 characters with the ellipsis, or all of the ellipsis. */
const truncate = filter(
  [optional(count, TRUNCATE_LENGTH), optional(text, ELLIPSIS)],
  (length, ellipsis) => {
    const kept = Math.max(0, length - countCharacters(ellipsis));
    return (input, meter) => {
      const value = inputText(input, meter);
      if (indexAfter(value, 0, length) >= value.length) return value;
      const end = indexAfter(value, 0, kept);
      meter.reserve(end + ellipsis.length);
      return value.slice(0, end) + ellipsis;
    };
  },
);

/** At least one word stays; unlike liquidjs, no ellipsis when nothing was cut (as Shopify). */
const truncatewords = filter(
  [optional(count, TRUNCATE_WORDS), optional(text, ELLIPSIS)],
  (words, ellipsis) => (input, meter) => {
    const value = inputText(input, meter);
    meter.reserve(value.length + ellipsis.length);
    const list = value.trimStart().split(/\s+/);
    const kept = Math.max(1, words);
    return list.length <= kept ? value : list.slice(0, kept).join(' ') + ellipsis;
  },
);

export const STRING_FILTERS: Readonly<Record<string, Filter>> = {
  append,
  prepend,
  truncate,
  truncatewords,
  capitalize: textFilter(capitalize),
  upcase: textFilter((value) => value.toUpperCase()),
  downcase: textFilter((value) => value.toLowerCase()),
  strip: textFilter((value) => value.trim()),
  lstrip: textFilter((value) => value.trimStart()),
  rstrip: textFilter((value) => value.trimEnd()),
  strip_newlines: textFilter((value) => value.replaceAll(/\r?\n/g, '')),
  newline_to_br: textFilter((value) => value.replaceAll(/\r?\n/g, '<br />\n')),
};
