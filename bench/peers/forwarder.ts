/**
 * What Node itself takes to forward a request: `node:http` before it, undici behind it, and nothing in
 * between. No headers but the body's, no key, no database.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import { listen } from '../../shared/process/listen.ts';
import { runAsBenchProcess } from '../child-process.ts';

export interface ForwarderSettings {
  readonly originPort: number;
}

/** As many connections as the load has. */
const CONNECTIONS = 64;
const TYPE = 'content-type';

async function begin({ originPort }: ForwarderSettings) {
  const agent = new Agent({ connections: CONNECTIONS });
  const origin = `http://127.0.0.1:${originPort}`;

  async function forward(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body: Buffer[] = [];
    req.on('data', (chunk: Buffer) => body.push(chunk));
    await once(req, 'end');
    const { method = '', url: path = '' } = req;
    const headers = [TYPE, req.headers[TYPE] ?? ''];
    const answer: Buffer[] = [];
    agent.dispatch(
      { origin, path, method: method as Dispatcher.HttpMethod, headers, body: Buffer.concat(body) },
      {
        onRequestStart: () => undefined,
        onResponseStart(_controller, status, { [TYPE]: type, 'content-length': length }) {
          res.writeHead(status, [TYPE, String(type), 'content-length', String(length)]);
        },
        onResponseData: (_controller, chunk) => void answer.push(Buffer.from(chunk)),
        onResponseEnd: () => res.end(Buffer.concat(answer)),
        // No figure is made of errors.
        onResponseError(_controller, error) {
          throw error;
        },
      },
    );
  }

  const server = createServer((req, res) => void forward(req, res));
  return { ready: { port: await listen(server, 0, '127.0.0.1') } };
}

runAsBenchProcess(begin);
