/**
 * Where proxies of the bench lead: a bare `node:http` server that reads a body and answers with as
 * many bytes. JSON is answered by JSON that says how many clear card numbers it has seen.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../../shared/process/listen.ts';
import { runAsBenchProcess } from '../child-process.ts';

/** Longer than any pause between rounds: a connection must not end as it is used again. */
const KEEP_ALIVE_MS = 600_000;
const CLEAR_CARD = '"number":"4';
const CHUNK = Buffer.alloc(64 * 1024, 'sallyport');

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.headers['content-type'] === 'application/json') await answerJson(req, res);
  else await mirror(req, res);
}

async function answerJson(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  const received = Buffer.concat(chunks).toString('latin1');
  const head = `{"cards":${received.split(CLEAR_CARD).length - 1},"padding":"`;
  const body = `${head}${'x'.repeat(Math.max(0, received.length - head.length - 2))}"}`;
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  res.end(body);
}

/** As many bytes as came, without keeping them. */
async function mirror(req: IncomingMessage, res: ServerResponse): Promise<void> {
  let received = 0;
  for await (const chunk of req) received += (chunk as Buffer).length;
  res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': received });
  for (let left = received; left > 0; left -= CHUNK.length) {
    if (!res.write(CHUNK.subarray(0, left))) await once(res, 'drain');
  }
  res.end();
}

async function begin() {
  // A caller that leaves in the middle ends its own exchange only.
  const server = createServer((req, res) => void answer(req, res).catch(() => res.destroy()));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  return { ready: { port: await listen(server, 0, '127.0.0.1') } };
}

runAsBenchProcess(begin);
