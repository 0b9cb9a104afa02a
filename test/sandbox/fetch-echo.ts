/** A sandbox whose scripts can fetch, and a destination that tells what reached it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import {
  createScriptFetch,
  type ScriptFetch,
  type ScriptFetchLimits,
} from '../../shared/sandbox/script-fetch.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { type Destination, startEgress, startHttp } from '../unit/egress/destinations.ts';

export interface FetchingSandbox {
  readonly sandbox: Sandbox;
  readonly destination: Destination;
  readonly fetches: ScriptFetch;
  /** `http://127.0.0.1:port` of the destination; `B` inside. */
  readonly base: string;
  /** The value of an async function with this body. */
  value(body: string, tenant_id?: string): Promise<unknown>;
  /** The messages of the error that it must end with. */
  errors(body: string): Promise<string[]>;
  close(): Promise<void>;
}

/** What `/echo` answers. */
export interface Echo {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly rawHeaders: string[];
  /** Latin-1. */
  readonly body: string;
}

async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { method, url, headers, rawHeaders } = request;
  const body = Buffer.concat(chunks).toString('latin1');
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ method, url, headers, rawHeaders, body }));
}

function reply(request: IncomingMessage, response: ServerResponse): void {
  switch (request.url) {
    case '/hang':
      return;
    case '/slow':
      return void setTimeout(() => response.end('slow'), 500);
    case '/length': {
      let length = 0;
      request.on('data', (chunk: Buffer) => {
        length += chunk.length;
      });
      return void request.on('end', () => response.end(String(length)));
    }
    case '/bytes':
      return void response.end(Buffer.from([0, 255, 128, 10]));
    case '/marked':
      return void response.end('\ufeff{"a":"ä€😀"}');
    case '/zipped':
      return void response.setHeader('Content-Encoding', 'gzip').end(gzipSync('unzipped'));
    case '/none':
      return void response.writeHead(204).end();
    case '/form':
      response.setHeader('Content-Type', 'application/x-www-form-urlencoded; charset=utf-8');
      return void response.end('a=1&b=x+y');
    case '/cookies':
      return void response
        .writeHead(404, ['Set-Cookie', 'a=1', 'set-cookie', 'b=2', 'X-A', '1', 'x-a', '2'])
        .end('cookies');
    case '/moved':
      return void response.writeHead(302, { Location: '/echo' }).end('moved');
    case '/inwards':
      return void response.writeHead(302, { Location: 'http://169.254.169.254/' }).end();
    case '/large':
      return void response.end(Buffer.alloc(10 * 1024 * 1024, 'x'));
    default:
      void echo(request, response);
  }
}

export async function startFetching(
  limits: Partial<ScriptFetchLimits> = {},
): Promise<FetchingSandbox> {
  const destination = await startHttp(reply);
  const egress = startEgress('127.0.0.0/8', [['127.0.0.1']]);
  const fetches = createScriptFetch({ egress, limits });
  const sandbox = await startSandbox();
  const base = `http://127.0.0.1:${destination.port}`;
  const source = (body: string) =>
    `module.exports = async (req) => { const B = req.args; ${body} };`;
  const request = (tenant_id: string) => ({
    ...{ tenant_id, args: JSON.stringify(base), services: { fetch: fetches.fetchFor(tenant_id) } },
  });
  return {
    ...{ sandbox, destination, fetches, base },
    value: (body, tenant_id = 'tenant') => sandbox.value(source(body), request(tenant_id)),
    async errors(body) {
      const result = await sandbox.result(source(body), request('tenant'));
      if (result.kind !== 'error') throw new Error(`it ended with ${JSON.stringify(result)}`);
      return Object.values(result.error.errors).flat();
    },
    async close() {
      await sandbox.supervisor.close();
      await fetches.close();
      await destination.close();
    },
  };
}
