/**
 * HTTP/1.1 requests read to the letter of RFC 9112, and not a byte more: where two readers could
 * disagree it says `malformed`. It shares no line with what it is held against. Text is latin1.
 */

export interface Message {
  readonly method: string;
  readonly target: string;
  /** Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Without its framing. */
  readonly body: string;
  /** Index behind it. */
  readonly end: number;
  /** What follows it on its connection is no request any more. */
  readonly isLast: boolean;
}

export type Reading = Message | 'incomplete' | 'malformed';

/** Several blanks around the target are one for the parser of Node, and unseen behind it (section 3). */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) +([!-~]+) +HTTP\/1\.([01])$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*$/;
const LENGTH = /^(?:0|[1-9]\d{0,14})$/;
/** A quoted value may hold anything visible; escapes of quotes are left to the malformed. */
const CHUNK_LINE = /^([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t -~\x80-\xff]*)?$/;

/** Every request of a connection, up to the first byte that is none. */
export function readMessages(bytes: string): Message[] {
  const messages: Message[] = [];
  for (let at = 0; ; ) {
    const message = readMessage(bytes, at);
    if (typeof message === 'string') return messages;
    messages.push(message);
    if (message.isLast) return messages;
    at = message.end;
  }
}

/** The request at `start`. Line breaks before it are skipped, by Node also half ones (section 2.2). */
export function readMessage(bytes: string, start: number): Reading {
  let at = start;
  while (bytes[at] === '\r' || bytes[at] === '\n') at += 1;
  const headEnd = bytes.indexOf('\r\n\r\n', at);
  if (headEnd < 0) return 'incomplete';
  const [line = '', ...fields] = bytes.slice(at, headEnd).split('\r\n');
  const request = REQUEST_LINE.exec(line);
  const headers = readFields(fields);
  if (request === null || headers === undefined) return 'malformed';
  const isOld = request[3] === '0';
  const valuesOf = (name: string): string[] =>
    headers.filter(([one]) => one === name).map(([, value]) => value);
  if (valuesOf('host').length !== 1) return 'malformed';
  const body = readBody(bytes, headEnd + 4, isOld, valuesOf);
  if (typeof body === 'string') return body;
  const options = valuesOf('connection').join(',').toLowerCase().split(',');
  const names = new Set(options.map((option) => option.trim()));
  const [, method = '', target = ''] = request;
  return {
    ...{ method, target, headers, body: body.text, end: body.end },
    isLast: names.has('close') || (isOld && !names.has('keep-alive')),
  };
}

function readFields(lines: readonly string[]): [string, string][] | undefined {
  const fields: [string, string][] = [];
  for (const line of lines) {
    const field = FIELD.exec(line);
    if (field === null) return undefined;
    fields.push([(field[1] as string).toLowerCase(), field[2] as string]);
  }
  return fields;
}

interface Body {
  readonly text: string;
  readonly end: number;
}

/** Section 6.3, without what it only tolerates. */
function readBody(
  bytes: string,
  start: number,
  isOld: boolean,
  valuesOf: (name: string) => string[],
): Body | 'incomplete' | 'malformed' {
  const lengths = valuesOf('content-length');
  const codings = valuesOf('transfer-encoding');
  if (codings.length > 0) {
    const isChunked = codings.length === 1 && codings[0]?.toLowerCase() === 'chunked';
    return isChunked && lengths.length === 0 && !isOld ? readChunks(bytes, start) : 'malformed';
  }
  const [length = '0'] = lengths;
  if (lengths.length > 1 || !LENGTH.test(length)) return 'malformed';
  const end = start + Number(length);
  return bytes.length < end ? 'incomplete' : { text: bytes.slice(start, end), end };
}

/** Section 7.1; trailer fields must be fields and are dropped. */
function readChunks(bytes: string, start: number): Body | 'incomplete' | 'malformed' {
  let text = '';
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return 'incomplete';
    const line = CHUNK_LINE.exec(bytes.slice(at, lineEnd));
    if (line === null) return 'malformed';
    const size = Number.parseInt(line[1] as string, 16);
    if (size === 0) return readTrailers(bytes, lineEnd, text);
    const dataEnd = lineEnd + 2 + size;
    if (bytes.length < dataEnd + 2) return 'incomplete';
    if (!bytes.startsWith('\r\n', dataEnd)) return 'malformed';
    text += bytes.slice(lineEnd + 2, dataEnd);
    at = dataEnd + 2;
  }
}

function readTrailers(
  bytes: string,
  lineEnd: number,
  text: string,
): Body | 'incomplete' | 'malformed' {
  const end = bytes.indexOf('\r\n\r\n', lineEnd);
  if (end < 0) return 'incomplete';
  const fields = bytes.slice(lineEnd + 2, end);
  if (end > lineEnd && readFields(fields.split('\r\n')) === undefined) return 'malformed';
  return { text, end: end + 4 };
}
