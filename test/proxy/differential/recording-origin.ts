/**
 * A destination that reads to the letter and keeps what it has read. It answers with the target it was
 * asked for, so that an answer in the place of another shows.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type Message, readMessage } from './strict-reader.ts';

export interface RecordingOrigin {
  readonly port: number;
  readonly seen: readonly Message[];
  /** What came and was no request to the letter: there must never be any. */
  readonly malformed: readonly string[];
  close(): Promise<void>;
}

export const SEEN_HEADER = 'x-seen';

/** Answers to some requests are chunked, and some end their connection, by what was asked. */
function answerTo({ method, target }: Message, count: number): string {
  const body = method === 'HEAD' ? '' : 'ok';
  const lines = [`HTTP/1.1 200 OK`, `X-Seen: ${target}`, 'Content-Type: text/plain'];
  if (count % 16 === 0) lines.push('Connection: close');
  if (count % 3 === 0) {
    const chunks = method === 'HEAD' ? '' : '2\r\nok\r\n0\r\n\r\n';
    return [...lines, 'Transfer-Encoding: chunked', '', chunks].join('\r\n');
  }
  return [...lines, 'Content-Length: 2', '', body].join('\r\n');
}

export async function startRecordingOrigin(): Promise<RecordingOrigin> {
  const seen: Message[] = [];
  const malformed: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    let bytes = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      bytes += text;
      for (;;) {
        const message = bytes === '' ? 'incomplete' : readMessage(bytes, 0);
        if (message === 'incomplete') return;
        if (message === 'malformed') {
          malformed.push(bytes);
          socket.destroy();
          return;
        }
        bytes = bytes.slice(message.end);
        seen.push(message);
        socket.write(answerTo(message, seen.length), 'latin1');
        if (seen.length % 16 === 0) socket.end();
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    malformed,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
