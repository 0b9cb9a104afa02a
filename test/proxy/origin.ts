/**
 * A destination made of a raw socket: it keeps every byte it gets and answers with the bytes it is told,
 * so that nothing between the proxy and the test corrects anything.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

export interface ReceivedRequest {
  readonly line: string;
  /** `Name: value`, as they came. */
  readonly headers: readonly string[];
  readonly body: string;
}

export interface Origin {
  readonly port: number;
  readonly url: string;
  readonly received: ReceivedRequest[];
  connections(): number;
  open(): number;
  /** Settles when no connection is open. */
  allClosed(): Promise<void>;
  close(): Promise<void>;
}

export type Answering = (socket: Socket, request: ReceivedRequest) => void;

export const OK = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok';

/** `answering` is called for each whole request; by default it is answered with `OK`. */
export async function startOrigin(
  answering: Answering | string = OK,
  tls?: TlsOptions,
): Promise<Origin> {
  const received: ReceivedRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const onSocket = (socket: Socket): void => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    let bytes = '';
    socket.on('data', (chunk) => {
      bytes += chunk.toString('latin1');
      for (;;) {
        const taken = takeRequest(bytes);
        if (taken === undefined) return;
        bytes = taken.rest;
        received.push(taken.request);
        if (typeof answering === 'string') socket.write(answering, 'latin1');
        else answering(socket, taken.request);
      }
    });
  };
  const server = tls === undefined ? createServer(onSocket) : createTlsServer(tls, onSocket);
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${tls === undefined ? 'http' : 'https'}://localhost:${port}`,
    received,
    connections: () => connections,
    open: () => sockets.size,
    allClosed: async () => {
      await Promise.all([...sockets].map((socket) => closed(socket)));
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function takeRequest(bytes: string): { request: ReceivedRequest; rest: string } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [line = '', ...headers] = bytes.slice(0, headEnd).split('\r\n');
  const find = (name: string): string | undefined =>
    headers
      .find((one) => one.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim();
  const start = headEnd + 4;
  if (find('transfer-encoding') === 'chunked') return takeChunks(bytes, start, { line, headers });
  const end = start + Number(find('content-length') ?? 0);
  if (bytes.length < end) return undefined;
  return { request: { line, headers, body: bytes.slice(start, end) }, rest: bytes.slice(end) };
}

function takeChunks(
  bytes: string,
  start: number,
  head: Omit<ReceivedRequest, 'body'>,
): { request: ReceivedRequest; rest: string } | undefined {
  let body = '';
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (bytes.length < end) return undefined;
    if (size === 0) return { request: { ...head, body }, rest: bytes.slice(end) };
    body += bytes.slice(lineEnd + 2, end - 2);
    at = end;
  }
}

/** Unlike `once` of events, also for a connection that ends with an error. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}
