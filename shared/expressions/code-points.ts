/**
 * Text counted by characters (code points), as Liquid counts, so that no filter tears an emoji into
 * two broken halves. Text without surrogates, the usual case, is handled by index.
 */

function isHigh(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** UTF-16 units of the character that starts at `index`: 1 or 2. */
export function unitsAt(text: string, index: number): 1 | 2 {
  return isHigh(text.charCodeAt(index)) && isLow(text.charCodeAt(index + 1)) ? 2 : 1;
}

/** Characters of `text`. */
export function countCharacters(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index += unitsAt(text, index)) count += 1;
  return count;
}

/** The index that lies `count` characters after `from`, at most the end. */
export function indexAfter(text: string, from: number, count: number): number {
  let index = from;
  for (let left = count; left > 0 && index < text.length; left -= 1) index += unitsAt(text, index);
  return index;
}

/** The index where the last `count` characters start. */
export function indexOfLast(text: string, count: number): number {
  let index = text.length;
  for (let left = count; left > 0 && index > 0; left -= 1) {
    const pair = isLow(text.charCodeAt(index - 1)) && isHigh(text.charCodeAt(index - 2));
    index -= pair ? 2 : 1;
  }
  return index;
}

/** `text` is exactly one character, and not half of one. */
export function isOneCharacter(text: string): boolean {
  return text.length > 0 && unitsAt(text, 0) === text.length && text.isWellFormed();
}
