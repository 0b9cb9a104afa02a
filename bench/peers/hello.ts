/** The peer of reads: a bare `node:http` server that answers every request with the same bytes. */
import { createServer } from 'node:http';
import { listen } from '../../shared/process/listen.ts';
import { runAsBenchProcess } from '../child-process.ts';

export interface HelloSettings {
  readonly body: string;
}

async function begin({ body }: HelloSettings) {
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  };
  const server = createServer((_req, res) => {
    res.writeHead(200, headers);
    res.end(body);
  });
  return { ready: { port: await listen(server, 0, '127.0.0.1') } };
}

runAsBenchProcess(begin);
