import { createServer } from 'node:http';
import { closeServer, listen } from '../shared/process/listen.ts';

/** A port of loopback that was free a moment ago, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server, 0, '127.0.0.1');
  await closeServer(server);
  return port;
}
