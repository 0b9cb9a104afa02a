/**
 * Gives up on a server that answers nothing. The socket's own timer does that: node-postgres would make
 * one for each statement, and what it closes over keeps results alive until the next major collection
 * (measured: a tenth of the CPU of a request that uses three tokens).
 */
import { Socket } from 'node:net';
import type { PoolClient } from 'pg';

/** Statements that are under way when nothing moved for so long fail, and the connection with them. */
export function endWhenSilent(client: PoolClient, limit_ms: number): void {
  const stream = socketOf(client);
  stream.setTimeout(limit_ms);
  stream.on('timeout', () => {
    if (isWaiting(client)) stream.destroy(new Error('Query read timeout'));
  });
}

/** Runs `work`, whose statements may take longer than others'. */
export async function withPatience<T>(
  client: PoolClient,
  limit_ms: number,
  work: () => Promise<T>,
): Promise<T> {
  const stream = socketOf(client);
  const usual_ms = stream.timeout ?? 0;
  stream.setTimeout(limit_ms);
  return work().finally(() => stream.setTimeout(usual_ms));
}

function socketOf({ connection }: PoolClient): Socket {
  const { stream } = connection;
  if (!(stream instanceof Socket)) throw new Error('a database connection that is no socket');
  return stream;
}

/** Whether a statement was sent that is not answered; not part of the types of node-postgres. */
function isWaiting(client: PoolClient): boolean {
  return Reflect.get(client, 'readyForQuery') !== true;
}
