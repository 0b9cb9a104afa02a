/** Says where in the bytes of a JSON text a position is, for an error. The text must have been found well-formed. */
import { itemPath, memberPath } from '../../shared/json-member-path.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** What a body is called in errors. */
const ROOT = 'body';

interface Container {
  readonly isList: boolean;
  index: number;
  /** Where the name of the member stands that is being read. */
  name: readonly [number, number];
}

/** The dotted path of the value at `position`, below `body`. */
export function memberPathAt(body: Buffer, position: number): string {
  let path = ROOT;
  for (const { isList, index, name } of containersAt(body, position)) {
    path = isList
      ? itemPath(path, index)
      : memberPath(path, String(JSON.parse(body.toString('utf8', ...name))));
  }
  return path;
}

/** The containers that are open before `position`, the outermost first. */
function containersAt(body: Buffer, position: number): readonly Container[] {
  const open: Container[] = [];
  let lastText: readonly [number, number] = [0, 0];
  for (let at = 0; at < position; at += 1) {
    const code = body[at];
    const container = open.at(-1);
    if (code === QUOTE) {
      const end = endOfText(body, at);
      lastText = [at, end];
      at = end - 1;
    } else if (code === COLON && container !== undefined) container.name = lastText;
    else if (code === COMMA && container !== undefined) container.index += 1;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      open.push({ isList: code === OPEN_BRACKET, index: 0, name: [0, 0] });
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) open.pop();
  }
  return open;
}

/** One past the quote that ends the text which starts here. */
function endOfText(body: Buffer, start: number): number {
  let at = start + 1;
  while (at < body.length && body[at] !== QUOTE) {
    at += body[at] === BACKSLASH ? 2 : 1;
  }
  return at + 1;
}
