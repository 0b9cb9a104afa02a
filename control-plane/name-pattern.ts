/** The `name` filter of lists: a wildcard search as a pattern of Postgres (design section 12). */
import { NAME_LENGTH_MAX } from '../shared/api/fields.ts';
import { fieldError } from '../shared/errors.ts';
import type { QueryParams } from '../shared/http/query.ts';

/** What may mean something in a regular expression. */
const PUNCTUATION = /[!-/:-@[-`{-~]/;

/**
 * A pattern for the operator `~`, or `undefined` without the parameter. `*` stands for any characters;
 * without one, the text may stand anywhere in the name. Both cases of a letter are spelled out, so
 * that letters outside ASCII match in a database of any locale. Throws 400 `errors.name` when the
 * parameter is repeated or longer than any name.
 */
export function readNamePattern(query: QueryParams): string | undefined {
  const [name, ...others] = query.all('name');
  if (name === undefined) return undefined;
  if (others.length > 0) throw fieldError('name', 'Must be given once');
  if (name.length > NAME_LENGTH_MAX) {
    throw fieldError('name', `Must have at most ${NAME_LENGTH_MAX} characters`);
  }
  const pattern = Array.from(name.replaceAll(/\*+/g, '*'), patternOf).join('');
  return name.includes('*') ? `^${pattern}$` : pattern;
}

/** `character` is one code point. */
function patternOf(character: string): string {
  if (character === '*') return '.*';
  if (PUNCTUATION.test(character)) return `\\${character}`;
  const cases = [character, character.toLowerCase(), character.toUpperCase()];
  // Some letters are several in their other case.
  const single = new Set(cases.filter((text) => Array.from(text).length === 1));
  return single.size === 1 ? character : `[${[...single].join('')}]`;
}
