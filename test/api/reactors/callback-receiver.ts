/** Where callbacks of tests go: every request is kept, and answered as the test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../support/http-call.ts';

export interface ReceivedCallback {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: JsonObject;
}

export interface CallbackReceiver {
  readonly url: string;
  readonly received: ReceivedCallback[];
  /** Answers the requests to come; 204 unless given. */
  answer: (res: ServerResponse, index: number) => unknown;
  /** Settles with the callback of this number, counting from 0, once it has come. */
  callback(index: number): Promise<ReceivedCallback>;
  /** Stops listening, as a receiver that is down; `listen` goes on at the same port. */
  close(): Promise<void>;
  listen(): Promise<void>;
}

export async function startCallbackReceiver(): Promise<CallbackReceiver> {
  const received: ReceivedCallback[] = [];
  const waiting: { index: number; resolve: (callback: ReceivedCallback) => void }[] = [];
  const server = createServer(async (req, res) => {
    res.on('error', () => undefined);
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString('utf8');
    const { url: path = '', method = '', headers } = req;
    const callback = { path, method, headers, text, body: JSON.parse(text) };
    const index = received.push(callback) - 1;
    await receiver.answer(res, index);
    for (const one of waiting) if (one.index === index) one.resolve(callback);
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const receiver: CallbackReceiver = {
    url: `http://127.0.0.1:${port}/hook?a=1`,
    received,
    answer: (res) => res.writeHead(204).end(),
    callback: async (index) =>
      received[index] ?? new Promise((resolve) => waiting.push({ index, resolve })),
    close: async () => {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
    listen: () => listen(port),
  };
  return receiver;
}
