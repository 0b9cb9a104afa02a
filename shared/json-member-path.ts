/**
 * Names the members of a body that clients shape as they like, for errors. A name that a client made
 * up is input: what does not look like the name of a field is never repeated.
 */

/** Letters, digits, `_` and `-`, few, and no run of digits that could be a number of somebody. */
const FIELD_NAME = /^(?!.*\d{4})[A-Za-z_][A-Za-z0-9_-]{0,39}$/;

/** Shown in place of any other name. */
const HIDDEN_NAME = '*';

/** The dotted path of member `name` below `path`; below the empty path it is the name alone. */
export function memberPath(path: string, name: string): string {
  const shown = FIELD_NAME.test(name) ? name : HIDDEN_NAME;
  return path === '' ? shown : `${path}.${shown}`;
}

/** The dotted path of item `index` below `path`. */
export function itemPath(path: string, index: number): string {
  return path === '' ? String(index) : `${path}.${index}`;
}
