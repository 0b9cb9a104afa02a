/**
 * A TCP port in front of the test's Postgres that can go dark or away, so that a test sees what the
 * service does without its database. The server itself listens on a unix socket only.
 */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';

export interface DatabaseProxy {
  /** The connection string that goes through here. */
  readonly connectionString: string;
  /** Passes nothing on any more, in both directions; connections stay open. */
  goDark(): void;
  /**
   * Forgets the connections that are open, as a router does after a pause: nothing passes on them any
   * more, and nobody is told. New ones work.
   */
  forgetConnections(): void;
  /** Leads new connections to another server; those that are open stay where they are. */
  switchTo(connectionString: string): void;
  /** Cuts every connection and refuses new ones. */
  goAway(): Promise<void>;
  /** Listens and passes on again. */
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

/** `connectionString` names a socket directory: `postgres://user:password@/database?host=/dir`. */
export async function startDatabaseProxy(connectionString: string): Promise<DatabaseProxy> {
  const url = urlOf(connectionString);
  let socketPath = socketOf(url);
  const sockets = new Set<Socket>();
  let isDark = false;
  let generation = 0;

  const server = createServer((client) => {
    const database = connect(socketPath);
    const born = generation;
    for (const [from, to] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => {
        if (!isDark && born === generation) to.write(chunk);
      });
      from.on('error', () => from.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });

  let port = 0;
  const listen = () =>
    new Promise<void>((resolve) => {
      server.listen(port, '127.0.0.1', () => {
        port = (server.address() as AddressInfo).port;
        resolve();
      });
    });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  await listen();
  const through = `${url.username}:${url.password}@127.0.0.1:${port}${url.pathname}`;
  return {
    connectionString: `postgres://${through}`,
    goDark: () => {
      isDark = true;
    },
    forgetConnections: () => {
      generation += 1;
    },
    switchTo: (other) => {
      socketPath = socketOf(urlOf(other));
    },
    goAway: close,
    comeBack: () => {
      isDark = false;
      return listen();
    },
    close,
  };
}

const urlOf = (connectionString: string): URL =>
  new URL(connectionString.replace('@/', '@localhost/'));

const socketOf = (url: URL): string => join(url.searchParams.get('host') ?? '', '.s.PGSQL.5432');
