/**
 * The operators' listener of one process: `/metrics`, `/healthz`, `/readyz`. Serves nothing else and
 * nothing about a single tenant, since it asks for no key.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Registry } from 'prom-client';

export interface Readiness {
  readonly ready: boolean;
  /** What is not ready, in words for an operator, e.g. `database`, `migrations`, `draining`. */
  readonly problems: readonly string[];
  /** The sandbox hosts of a data plane: whether one could reach the network, and how many live. */
  readonly sandbox?: { readonly network: 'none' | 'shared'; readonly hosts: number };
}

export interface MetricsServerOptions {
  /** 0 takes any free port. */
  readonly port: number;
  /** Unset: all interfaces, since a scraper is usually elsewhere. */
  readonly host?: string | undefined;
  /** The metrics in Prometheus' text format. */
  readonly collect: () => Promise<string>;
  readonly readiness: () => Promise<Readiness>;
  /** Whether every process lives; unset: answering is proof enough. */
  readonly isAlive?: () => boolean;
}

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** A scraper sends a few hundred bytes; anything slower or bigger is none. */
const REQUEST_TIMEOUT_MS = 5_000;
const HEADER_BYTES_MAX = 8_192;

/** Listens, and settles once it does; rejects when the port is taken. */
export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, maxHeaderSize: HEADER_BYTES_MAX },
    (request, response) => {
      const path = request.url?.split('?', 1)[0] ?? '';
      answer(options, request.method ?? '', path, response).catch(() =>
        write(response, 503, 'text/plain', 'not available\n'),
      );
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  options: MetricsServerOptions,
  method: string,
  path: string,
  response: ServerResponse,
): Promise<void> {
  if (method !== 'GET' && method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    return write(response, 405, 'text/plain', 'method not allowed\n');
  }
  if (path === '/metrics') {
    return write(response, 200, Registry.PROMETHEUS_CONTENT_TYPE, await options.collect());
  }
  if (path === '/healthz') {
    const alive = options.isAlive?.() ?? true;
    return writeJson(response, alive ? 200 : 503, { alive });
  }
  if (path === '/readyz') {
    const readiness = await options.readiness();
    return writeJson(response, readiness.ready ? 200 : 503, readiness);
  }
  return write(response, 404, 'text/plain', 'not found\n');
}

function writeJson(response: ServerResponse, status: number, body: object): void {
  write(response, status, 'application/json', `${JSON.stringify(body)}\n`);
}

function write(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  response.end(body);
}
