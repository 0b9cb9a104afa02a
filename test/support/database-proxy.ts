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
  /** Cuts every connection and refuses new ones. */
  goAway(): Promise<void>;
  /** Listens and passes on again. */
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

/** `connectionString` names a socket directory: `postgres://user:password@/database?host=/dir`. */
export async function startDatabaseProxy(connectionString: string): Promise<DatabaseProxy> {
  const url = new URL(connectionString.replace('@/', '@localhost/'));
  const socketPath = join(url.searchParams.get('host') ?? '', '.s.PGSQL.5432');
  const sockets = new Set<Socket>();
  let isDark = false;

  const server = createServer((client) => {
    const database = connect(socketPath);
    for (const [from, to] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => {
        if (!isDark) to.write(chunk);
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
    goAway: close,
    comeBack: () => {
      isDark = false;
      return listen();
    },
    close,
  };
}
