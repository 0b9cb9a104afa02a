/**
 * What `URL` and the `url` module of a script ask of the host: parsing, which Node has and a bare isolate
 * has not. Text in, JSON text out; resolves no name and opens nothing.
 */
import url from 'node:url';

/** Longer than any URL that a request may have. */
const TEXT_CHARACTERS_MAX = 64 * 1024;

const SETTABLE = [
  ...['protocol', 'username', 'password', 'host', 'hostname'],
  ...['port', 'pathname', 'search', 'hash'],
] as const;

type Settable = (typeof SETTABLE)[number];

/** `undefined` when it is no URL, or no question at all. `text`: JSON of the operation's arguments. */
export function answerUrl(operation: unknown, text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > TEXT_CHARACTERS_MAX) return undefined;
  try {
    const [first, second, third]: unknown[] = JSON.parse(text);
    const answer = answerOperation(operation, first, second, third);
    return answer === undefined ? undefined : JSON.stringify(answer);
  } catch {
    return undefined;
  }
}

function answerOperation(operation: unknown, first: unknown, second: unknown, third: unknown) {
  if (operation === 'legacy_format' && typeof first === 'object' && first !== null) {
    return url.format(first);
  }
  if (typeof first !== 'string') return undefined;
  if (operation === 'parse') {
    return partsOf(new URL(first, typeof second === 'string' ? second : undefined));
  }
  if (operation === 'legacy_parse') return url.parse(first);
  if (typeof second !== 'string') return undefined;
  if (operation === 'legacy_resolve') return url.resolve(first, second);
  const part = SETTABLE.find((name) => name === second);
  if (operation !== 'set' || part === undefined || typeof third !== 'string') return undefined;
  return setPart(new URL(first), part, third);
}

function setPart(parsed: URL, part: Settable, value: string) {
  parsed[part] = value;
  return partsOf(parsed);
}

function partsOf(parsed: URL) {
  const { href, origin, protocol, username, password, host, hostname, port } = parsed;
  const { pathname, search, hash } = parsed;
  return {
    ...{ href, origin, protocol, username, password },
    ...{ host, hostname, port, pathname, search, hash },
  };
}
