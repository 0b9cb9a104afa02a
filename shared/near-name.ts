/** What a misspelt name was probably meant to be. Pure. */

/** More edits than this are another word, not a slip of the finger. */
const EDITS_MAX = 2;

/** The nearest of the known names within two edits; `undefined` when none is that near. */
export function nearName(name: string, known: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let fewest = EDITS_MAX + 1;
  for (const candidate of known) {
    const edits = editsBetween(name, candidate);
    if (edits < fewest) [nearest, fewest] = [candidate, edits];
  }
  return nearest;
}

/** Characters to insert, delete or replace (Levenshtein distance), one row of the table at a time. */
function editsBetween(from: string, to: string): number {
  // Also keeps a name of a megabyte from costing anything.
  if (Math.abs(from.length - to.length) > EDITS_MAX) return EDITS_MAX + 1;
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
