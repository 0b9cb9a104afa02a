/**
 * One kept-alive HTTP/1.1 connection with one request in flight, on a raw socket: it must cost far
 * less CPU than the servers it measures. Reads answers with a content-length only; anything that is
 * not the answer expected ends the run.
 */
import { connect, type Socket } from 'node:net';

/** A request and what its answer must be: no figure is made of errors. */
export interface Exchange {
  /** The whole request, latin1. */
  readonly request: string;
  readonly status: number;
  /** Text that the body must contain. */
  readonly contains: string;
}

export interface Connection {
  send(exchange: Exchange): void;
  close(): void;
}

const READ_BUFFER_BYTES = 64 * 1024;
const HEAD_END = '\r\n\r\n';
/** As servers on Node write it, and as others do. */
const LENGTH_NAMES = ['content-length: ', 'Content-Length: '];
/** One answer in so many is parsed as JSON. */
const PARSE_EVERY = 256;

/** Settles when connected. `onAnswer` gets each complete and expected answer, head and body. */
export function openConnection(
  port: number,
  onAnswer: (answer: string) => void,
): Promise<Connection> {
  let expected: Exchange | undefined;
  let pending = '';
  let answers = 0;

  function take(text: string): void {
    pending = pending === '' ? text : pending + text;
    const headEnd = pending.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const bodyStart = headEnd + HEAD_END.length;
    const end = bodyStart + lengthOf(pending, headEnd);
    if (pending.length < end) return;
    if (expected === undefined || pending.length > end) throw new Error('an answer nobody asked');
    answers += 1;
    check(expected, pending, bodyStart, answers % PARSE_EVERY === 0);
    const answer = pending;
    expected = undefined;
    pending = '';
    onAnswer(answer);
  }

  const buffer = Buffer.allocUnsafe(READ_BUFFER_BYTES);
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({
      host: '127.0.0.1',
      port,
      noDelay: true,
      onread: {
        buffer,
        callback: (bytes) => {
          take(buffer.toString('latin1', 0, bytes));
          return true;
        },
      },
    });
    socket.once('error', reject);
    socket.once('end', () => {
      throw new Error('the server closed a connection');
    });
    socket.once('connect', () =>
      resolve({
        send(exchange) {
          expected = exchange;
          socket.write(exchange.request, 'latin1');
        },
        close: () => socket.destroy(),
      }),
    );
  });
}

function lengthOf(answer: string, headEnd: number): number {
  for (const name of LENGTH_NAMES) {
    const at = answer.indexOf(name);
    if (at === -1 || at > headEnd) continue;
    return Number.parseInt(answer.slice(at + name.length, at + name.length + 10), 10);
  }
  throw new Error(`no content-length in:\n${answer}`);
}

function check(expected: Exchange, answer: string, bodyStart: number, parse: boolean): void {
  const isExpected =
    answer.startsWith(`HTTP/1.1 ${expected.status} `) &&
    answer.includes(expected.contains, bodyStart);
  if (!isExpected) throw new Error(`expected ${expected.status}, got:\n${answer}`);
  if (parse) JSON.parse(answer.slice(bodyStart));
}
