/**
 * The smallest server that uses listener and strict layer as the data plane does, so that tests of
 * them need no database. The key `good` is known.
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { ApiError } from '../../shared/errors.ts';
import { PREFLIGHT_HEADERS } from '../../shared/http/cors.ts';
import { condemn, guardListener, LISTENER_OPTIONS } from '../../shared/http/listener.ts';
import { readBody } from '../../shared/http/read-body.ts';
import { BODY_LIMITS, type BodyLimits } from '../../shared/http/slow-bodies.ts';
import { checkRequest } from '../../shared/http/strict-request.ts';

export class StrictServer {
  /** `METHOD path body` of everything that got past authentication. */
  readonly served: string[] = [];
  readonly #server: Server;

  constructor(options: ServerOptions = LISTENER_OPTIONS, bodies: BodyLimits = BODY_LIMITS) {
    this.#server = createServer(options);
    const serve: RequestListener = (req, res) => {
      this.#serve(req, res).catch((error: unknown) => writeError(res, error));
    };
    guardListener(this.#server, serve, { bodies });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const view = checkRequest(req.method ?? '', req.url ?? '', req.httpVersion, req.rawHeaders);
    if (!view.ok) {
      if (view.close) condemn(req.socket);
      const headers = view.close ? { connection: 'close' } : {};
      throw new ApiError(view.code, view.detail, { headers });
    }
    if (view.method === 'OPTIONS') {
      res.writeHead(204, [...PREFLIGHT_HEADERS]).end();
      return;
    }
    if (view.apiKey !== 'good') throw new ApiError('unauthorized', 'A key is needed');
    if (view.expectsContinue) res.writeContinue();
    const { contentEncoding } = view;
    const body = await readBody(req, { limitBytes: 1024, contentEncoding });
    this.served.push(`${view.method} ${view.path} ${body.toString('latin1')}`.trim());
    const text = JSON.stringify({ path: view.path, trailers: req.trailers });
    res.writeHead(200, { 'content-length': text.length }).end(text);
  }
}

function writeError(res: ServerResponse, error: unknown): void {
  if (!(error instanceof ApiError)) throw error;
  const body = JSON.stringify(error.toProblem());
  res.writeHead(error.status, { ...error.headers, 'content-length': body.length }).end(body);
}

/** A request head with Host and key unless `lines` brings its own. */
export const head = (line: string, ...lines: string[]): string =>
  [line, 'Host: localhost', 'BT-API-KEY: good', ...lines, '', ''].join('\r\n');
