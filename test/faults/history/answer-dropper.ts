/**
 * A TCP port in front of a Postgres that loses answers on demand: the statement was carried out, the
 * connection breaks before its answer arrives. What a caller then believes is what this is about.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface AnswerDropper {
  /** The connection string that goes through here. */
  readonly connectionString: string;
  /** Loses the answers to the next so many statements that make something durable. */
  drop(count: number): void;
  /** How many were lost so far. */
  dropped(): number;
  close(): Promise<void>;
}

/** In the bytes that go to the server: a COMMIT, or a write that commits by itself. */
const DURABLE = ['COMMIT', 'insert-tokens'];

/** `connectionString` names a socket directory: `postgres://user:password@/database?host=/dir`. */
export async function startAnswerDropper(
  connectionString: string,
  durable: readonly string[] = DURABLE,
): Promise<AnswerDropper> {
  const url = new URL(connectionString.replace('@/', '@localhost/'));
  const socketPath = `${url.searchParams.get('host') ?? ''}/.s.PGSQL.5432`;
  const sockets = new Set<Socket>();
  let wanted = 0;
  let lost = 0;

  const server = createServer((client) => {
    const database = connect(socketPath);
    let isDurable = false;
    const cut = (): void => {
      client.destroy();
      database.destroy();
    };
    client.on('data', (chunk) => {
      isDurable ||= durable.some((text) => chunk.includes(text));
      database.write(chunk);
    });
    database.on('data', (chunk) => {
      if (isDurable && wanted > 0) {
        wanted -= 1;
        lost += 1;
        cut();
        return;
      }
      isDurable = false;
      client.write(chunk);
    });
    for (const socket of [client, database]) {
      sockets.add(socket);
      socket.on('error', cut).on('close', () => {
        sockets.delete(socket);
        cut();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    connectionString: `postgres://${url.username}:${url.password}@127.0.0.1:${port}${url.pathname}`,
    drop: (count) => {
      wanted = count;
    },
    dropped: () => lost,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
