/** Destinations on loopback that count what reaches them, and an egress that knows their names. */
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { parseAllowList } from '../../../shared/egress/address-rules.ts';
import {
  createEgress,
  type Egress,
  type EgressSettings,
} from '../../../shared/egress/create-egress.ts';
import { EgressError } from '../../../shared/egress/egress-error.ts';
import type { AddressRange } from '../../../shared/egress/ip-address.ts';
import { createRefusalLog } from '../../../shared/egress/refusal-log.ts';

export interface Destination {
  readonly port: number;
  /** TCP connections so far. */
  connections(): number;
  /** The server names that clients sent (false: none). */
  readonly serverNames: (string | false | null)[];
  /** Paths of the HTTP requests that arrived. */
  readonly requests: string[];
  /** Settles when no connection is open. */
  allClosed(): Promise<void>;
  close(): Promise<void>;
}

const answer: RequestListener = (_request, response) => response.end('hello');

export function startHttp(listener: RequestListener = answer): Promise<Destination> {
  const requests: string[] = [];
  const server = createHttpServer((request, response) => {
    requests.push(request.url ?? '');
    listener(request, response);
  });
  return start(server, { requests });
}

export function startHttps(options: ServerOptions, listener = answer): Promise<Destination> {
  const requests: string[] = [];
  const serverNames: (string | false | null)[] = [];
  const server = createHttpsServer(options, (request, response) => {
    requests.push(request.url ?? '');
    listener(request, response);
  });
  server.on('secureConnection', (socket) => serverNames.push(socket.servername));
  return start(server, { requests, serverNames });
}

/** A TCP server; `onSocket` does all the talking. */
export function startTcp(onSocket: (socket: Socket) => void): Promise<Destination> {
  const server = createServer((socket) => {
    // Unread, the end of the connection would not be noticed.
    socket.resume();
    onSocket(socket);
  });
  return start(server, {});
}

async function start(
  server: Server,
  seen: Partial<Pick<Destination, 'requests' | 'serverNames'>>,
): Promise<Destination> {
  const open = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    requests: seen.requests ?? [],
    serverNames: seen.serverNames ?? [],
    allClosed: async () => {
      await Promise.all([...open].map((socket) => closed(socket)));
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** `text` as of SALLYPORT_EGRESS_ALLOW. */
export function allowList(text: string): readonly AddressRange[] {
  const ranges = text === '' ? [] : parseAllowList(text);
  if (ranges === undefined) throw new Error('not an allow list');
  return ranges;
}

export interface TestEgress extends Egress {
  /** The names that were resolved, in order. */
  readonly resolved: string[];
  /** The fields of what was logged. */
  readonly logged: { reason: unknown; count: unknown; tenant_id: unknown }[];
}

/** An egress whose every name leads to what `answers` says, one element per resolution, repeated. */
export function startEgress(
  allow: string,
  answers: readonly (readonly string[])[],
  more: Partial<EgressSettings> = {},
): TestEgress {
  const resolved: string[] = [];
  const logged: TestEgress['logged'] = [];
  const warn = (...line: unknown[]): unknown => logged.push(line[0] as (typeof logged)[number]);
  const egress = createEgress({
    allow: allowList(allow),
    onRefused: createRefusalLog({ warn }),
    resolveName: async (name) => {
      resolved.push(name);
      return [...(answers[(resolved.length - 1) % answers.length] ?? [])];
    },
    ownAddresses: () => [],
    ...more,
  });
  return { ...egress, resolved, logged };
}

/** The EgressError that a promise is rejected with, directly or as the cause; fails otherwise. */
export async function refusalOf(promise: Promise<unknown>): Promise<EgressError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof EgressError) return error;
  throw new Error('not refused by the egress', { cause: error });
}

/** Unlike `once` of events, also for a connection that ends with an error. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}
