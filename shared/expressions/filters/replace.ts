/**
 * Liquid's replace and remove filters. The pattern is plain text, never a regular expression; an
 * empty one matches nothing. The length of the result is known before it is made.
 */
import { type BoundFilter, chargeSearch, type Filter, filter, inputText, text } from './filter.ts';

function countMatches(value: string, pattern: string): number {
  let matches = 0;
  let index = value.indexOf(pattern);
  while (index >= 0) {
    matches += 1;
    index = value.indexOf(pattern, index + pattern.length);
  }
  return matches;
}

function replaceAll(pattern: string, replacement: string): BoundFilter {
  return (input, meter) => {
    const value = inputText(input, meter);
    if (pattern === '') return value;
    chargeSearch(value, pattern, meter);
    const matches = countMatches(value, pattern);
    if (matches === 0) return value;
    meter.reserve(value.length + matches * (replacement.length - pattern.length));
    // A function, so that `$&` in the replacement stays as it is.
    return value.replaceAll(pattern, () => replacement);
  };
}

function replaceOne(pattern: string, replacement: string, from: 'first' | 'last'): BoundFilter {
  return (input, meter) => {
    const value = inputText(input, meter);
    if (pattern === '') return value;
    chargeSearch(value, pattern, meter);
    const index = from === 'first' ? value.indexOf(pattern) : value.lastIndexOf(pattern);
    if (index < 0) return value;
    meter.reserve(value.length + replacement.length - pattern.length);
    return value.slice(0, index) + replacement + value.slice(index + pattern.length);
  };
}

export const REPLACE_FILTERS: Readonly<Record<string, Filter>> = {
  replace: filter([text, text], replaceAll),
  replace_first: filter([text, text], (from, to) => replaceOne(from, to, 'first')),
  replace_last: filter([text, text], (from, to) => replaceOne(from, to, 'last')),
  remove: filter([text], (pattern) => replaceAll(pattern, '')),
  remove_first: filter([text], (pattern) => replaceOne(pattern, '', 'first')),
  remove_last: filter([text], (pattern) => replaceOne(pattern, '', 'last')),
};
