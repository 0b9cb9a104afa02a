/** The ways in which printers of JSON write one and the same text. Pure. */

const SPELLED_DIFFERENTLY = /[/\u0080-\uffff]/;
const BEYOND_ASCII = /[\u0080-\uffff]/g;

/** Whether there is another way to write it than `JSON.stringify`'s; most texts have none. */
export function hasOtherSpellings(escaped: string): boolean {
  return SPELLED_DIFFERENTLY.test(escaped);
}

/**
 * Of a text as `JSON.stringify` escapes it: PHP writes `\/`, PHP and Python `\u00fc`, .NET `\u00FC`. One by
 * one, for each costs time and room; some may be the same.
 */
export function* otherSpellings(escaped: string): Generator<string> {
  const slashed = escaped.replaceAll('/', '\\/');
  for (const text of slashed === escaped ? [escaped] : [escaped, slashed]) {
    yield text;
    yield text.replace(BEYOND_ASCII, (unit) => `\\u${hexOf(unit)}`);
    yield text.replace(BEYOND_ASCII, (unit) => `\\u${hexOf(unit).toUpperCase()}`);
  }
}

/** Of one UTF-16 unit: characters beyond 16 bits are written as two. */
function hexOf(unit: string): string {
  return unit.charCodeAt(0).toString(16).padStart(4, '0');
}
