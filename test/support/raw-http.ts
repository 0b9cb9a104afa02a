/**
 * A client that sends bytes as they are and splits what comes back into answers. It must never
 * correct, retry or pool: the tests are about what a broken client meets.
 */
import { connect } from 'node:net';

export interface RawAnswer {
  status: number;
  /** Lower-case names; a repeated header keeps its last value. */
  headers: Record<string, string>;
  body: string;
}

export interface RawExchange {
  answers: RawAnswer[];
  /** The server ended the connection. */
  closed: boolean;
}

/**
 * Sends `bytes` (a string is latin1) and reads until `answers` answers are complete, or, when that
 * is not given, until the server closes. `onAnswer` may return more bytes to send.
 */
export function exchange(
  port: number,
  bytes: string | Buffer,
  answers = Number.POSITIVE_INFINITY,
  onAnswer: (answer: RawAnswer) => string | undefined = () => undefined,
): Promise<RawExchange> {
  return new Promise((resolve) => {
    const seen: RawAnswer[] = [];
    let received = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    });
    const finish = (closed: boolean) => {
      socket.destroy();
      resolve({ answers: seen, closed });
    };
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      for (;;) {
        const next = takeAnswer(received);
        if (next === undefined) break;
        received = next.rest;
        seen.push(next.answer);
        const more = onAnswer(next.answer);
        if (more !== undefined) socket.write(Buffer.from(more, 'latin1'));
        if (seen.length >= answers) return finish(false);
      }
    });
    // A reset after the answers is a close; before them the missing answer fails the test.
    socket.on('error', () => undefined);
    socket.on('close', () => finish(true));
  });
}

function takeAnswer(text: string): { answer: RawAnswer; rest: string } | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const bodyStart = headEnd + 4;
  const bodyEnd = bodyStart + Number(headers['content-length'] ?? 0);
  if (text.length < bodyEnd) return undefined;
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  return {
    answer: { status, headers, body: text.slice(bodyStart, bodyEnd) },
    rest: text.slice(bodyEnd),
  };
}
