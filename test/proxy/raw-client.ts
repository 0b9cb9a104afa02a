/** A caller made of a raw socket: it shows the very bytes of answers, and how the connection ended. */
import { connect } from 'node:net';

export interface RawResult {
  readonly text: string;
  /** `open`: the wanted text came, and the connection was still there. */
  readonly ending: 'end' | 'reset' | 'open';
}

export interface RawAnswer {
  readonly status: number;
  /** `Name: value`, as they came. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** Sends `bytes` (latin1) and reads until the connection ends or `isEnough` of what came is true. */
export function sendRaw(
  port: number,
  bytes: string,
  isEnough: (text: string) => boolean = () => false,
): Promise<RawResult> {
  return new Promise((resolve) => {
    let text = '';
    let isReset = false;
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from(bytes, 'latin1')));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (!isEnough(text)) return;
      resolve({ text, ending: 'open' });
      socket.destroy();
    });
    socket.on('error', () => {
      isReset = true;
    });
    socket.on('close', () => resolve({ text, ending: isReset ? 'reset' : 'end' }));
  });
}

/** A request; the connection ends with its answer. Lines are headers besides Host. */
export function request(line: string, lines: readonly string[], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: localhost', ...lines, '', body].join('\r\n');
}

/** The first answer of what was received. */
export function parseAnswer(text: string): RawAnswer {
  const headEnd = text.indexOf('\r\n\r\n');
  const [line = '', ...headers] = text.slice(0, headEnd).split('\r\n');
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(line)?.[1]),
    headers,
    body: text.slice(headEnd + 4),
  };
}

/** The values of a header, `name` in lower case. */
export function valuesOf({ headers }: Pick<RawAnswer, 'headers'>, name: string): string[] {
  return headers
    .filter((one) => one.toLowerCase().startsWith(`${name}:`))
    .map((one) => one.slice(name.length + 1).trim());
}
