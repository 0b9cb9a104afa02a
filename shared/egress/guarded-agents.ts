/**
 * Agents of `node:http` and `node:https` whose every socket comes from the guard. They must never obey
 * the socket and TLS options of a request: `lookup`, `servername`, `rejectUnauthorized`, `ca`.
 */
import {
  type AgentOptions,
  type ClientRequest,
  type ClientRequestArgs,
  Agent as HttpAgent,
} from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Connect } from './connect.ts';
import { EgressError } from './egress-error.ts';

export interface GuardedAgents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
  /** Closes all sockets, in use or not. */
  destroy(): void;
}

/** Told of the connection that is made for one request: it may take long, and outlive the request. */
export interface ConnectionWatcher {
  onConnecting(): void;
  /** It is there, or has failed. */
  onConnected(): void;
}

/** Where a request's options have its watcher; one that gets a connection of the pool calls it not at all. */
export const CONNECTION_WATCHER = Symbol('watcher of the connection');

declare module 'node:http' {
  interface ClientRequestArgs {
    [CONNECTION_WATCHER]?: ConnectionWatcher;
  }

  interface Agent {
    /** What Node asks of anything that is to be an agent; its types do not say so. */
    addRequest(request: ClientRequest, ...rest: unknown[]): void;
  }
}

/** What Node hands to `createConnection`: called once, with an error or a socket. */
type Created = ((error: Error | null, socket: Duplex) => void) | undefined;

/**
 * One pair of agents with their own pools. Node counts a socket only once it is connected, so a burst
 * may open more than `maxSockets` at first: callers bound their own concurrency.
 */
export function createGuardedAgents(connect: Connect, options: AgentOptions): GuardedAgents {
  const http = new GuardedHttpAgent(connect, options);
  const https = new GuardedHttpsAgent(connect, options);
  return {
    http,
    https,
    destroy: () => {
      http.destroy();
      https.destroy();
    },
  };
}

class GuardedHttpAgent extends HttpAgent {
  readonly #connect: Connect;

  constructor(connect: Connect, options: AgentOptions) {
    super(options);
    this.#connect = connect;
  }

  override createConnection(options: ClientRequestArgs, created: Created): undefined {
    open(this.#connect, options, true, created);
  }

  override addRequest(request: ClientRequest, ...rest: unknown[]): void {
    super.addRequest(keepingAllHeaders(request), ...rest);
  }
}

class GuardedHttpsAgent extends HttpsAgent {
  readonly #connect: Connect;

  constructor(connect: Connect, options: AgentOptions) {
    super(options);
    this.#connect = connect;
  }

  override createConnection(options: ClientRequestArgs, created: Created): undefined {
    open(this.#connect, options, false, created);
  }

  override addRequest(request: ClientRequest, ...rest: unknown[]): void {
    super.addRequest(keepingAllHeaders(request), ...rest);
  }
}

/**
 * Node silently drops the headers of an answer behind the first 1,000, and with them what they say of its
 * body. How many fit is bounded by the bytes of a head. Once a request has its socket it is too late.
 */
function keepingAllHeaders(request: ClientRequest): ClientRequest {
  request.maxHeadersCount = 0;
  return request;
}

function open(
  connect: Connect,
  options: ClientRequestArgs,
  isPlain: boolean,
  created: Created,
): void {
  const connecting = async (): Promise<Duplex> => {
    // A unix socket has no address to judge.
    if (options.socketPath) throw new EgressError('host_refused');
    const port = Number(options.port ?? (isPlain ? 80 : 443));
    return connect(options.host ?? '', port, isPlain);
  };
  const watcher = options[CONNECTION_WATCHER];
  watcher?.onConnecting();
  connecting()
    .finally(() => watcher?.onConnected())
    .then(
      (socket) => created?.(null, socket),
      // Node's type wants a socket beside the error; it reads none.
      (error: Error) => (created as ((error: Error) => void) | undefined)?.(error),
    );
}
