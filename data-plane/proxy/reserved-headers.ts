/**
 * Requests whose caller sets headers of the connection to the destination (BT-PROXY-KEEP-ALIVE,
 * BT-PROXY-CONNECTION): they go through http-proxy over the same guard, since undici refuses them.
 */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import httpProxy from 'http-proxy';
import {
  CONNECTION_WATCHER,
  type ConnectionWatcher,
  type GuardedAgents,
} from '../../shared/egress/guarded-agents.ts';
import { endUnfinished } from '../end-unfinished.ts';
import { DestinationBody } from './destination-body.ts';
import {
  ANSWER_WITHIN_MS,
  DeadlineTimer,
  type DestinationAnswer,
  type Exchange,
  ExchangeEnded,
  type ExchangeWatcher,
  INFORMATIONAL_MAX,
  type OutgoingRequest,
} from './exchange.ts';
import type { ReservedHeaders } from './read-request.ts';
import { Stay } from './stay.ts';

interface Caller {
  /** The answer is not written to them here. */
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly watcher: ExchangeWatcher;
}

export function sendReserved(
  agents: GuardedAgents,
  request: OutgoingRequest,
  reserved: ReservedHeaders,
  caller: Caller,
  answerWithinMs = ANSWER_WITHIN_MS,
): Exchange {
  const exchange = new ReservedExchange(request.body, answerWithinMs, caller.watcher);
  exchange.send(agents, request, reserved, caller);
  return exchange;
}

class ReservedExchange implements Exchange, ConnectionWatcher {
  readonly answer: Promise<DestinationAnswer>;
  #resolve: (answer: DestinationAnswer) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  readonly #timer: DeadlineTimer;
  readonly #stay: Stay;
  readonly #stream: Readable;
  #outgoing: ClientRequest | undefined;
  #ended: ExchangeEnded | undefined;
  #isConnecting = false;
  #isLeft = false;

  constructor(body: OutgoingRequest['body'], answerWithinMs: number, watcher: ExchangeWatcher) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#stay = new Stay(body, watcher);
    this.#stream = streamOf(body);
    this.#timer = new DeadlineTimer(body, answerWithinMs, () =>
      this.abort(new ExchangeEnded('timeout')),
    );
  }

  send(
    agents: GuardedAgents,
    request: OutgoingRequest,
    reserved: ReservedHeaders,
    { req, res }: Caller,
  ): void {
    // One per request: its events are this request's.
    const proxy = httpProxy.createProxyServer({ selfHandleResponse: true });
    proxy.on('proxyReq', (made: ClientRequest) => this.#begin(made));
    proxy.on('proxyRes', (incoming: IncomingMessage) => this.#take(incoming));
    const onError = (error: unknown): void => this.#fail(error);
    // A caller who resets its connection before there is one to the destination: http-proxy says only this.
    proxy.on('econnreset', onError);
    const address = addressOf(request);
    const { method, headers, url } = req;
    // What is forwarded was chosen already; http-proxy would add the rest. To a DELETE it adds a length
    // of 0, whatever frames the body, so it is told another method than it is to send.
    Object.assign(req, { method: 'POST', headers: {}, url: request.target });
    try {
      proxy.web(
        req,
        res,
        {
          target: address as unknown as URL,
          agent: address.protocol === 'https:' ? agents.https : agents.http,
          ssl: optionsWith(headersOf(request, reserved, address.host), this),
          buffer: this.#stream,
          method: request.method,
          toProxy: true,
          followRedirects: false,
        },
        onError,
      );
    } catch (error) {
      this.#fail(error);
    }
    Object.assign(req, { method, headers, url });
  }

  abort(error: ExchangeEnded): void {
    this.#ended = error;
    this.#fail(error);
    this.#outgoing?.destroy(error);
  }

  onConnecting(): void {
    this.#isConnecting = true;
  }

  onConnected(): void {
    this.#isConnecting = false;
    if (this.#isLeft) this.#stay.over();
  }

  /** There is a connection for the request. */
  #begin(made: ClientRequest): void {
    this.#outgoing = made;
    limitInformational(made, (error) => this.abort(error));
    // What is left of the caller's body goes nowhere, so that its connection can be read to its end.
    made.on('close', () => {
      this.#stream.destroy();
      this.#leave();
    });
    if (this.#ended !== undefined) made.destroy(this.#ended);
    else this.#stay.begin();
  }

  #take(incoming: IncomingMessage): void {
    // A 101 that does not say to what: nobody asked for it, and what follows it is no HTTP.
    if ((incoming.statusCode ?? 0) < 200) {
      this.abort(new ExchangeEnded('status'));
      return;
    }
    this.#timer.stop();
    incoming.on('end', () => endUnfinished(this.#outgoing));
    this.#resolve({
      status: incoming.statusCode ?? 0,
      headers: incoming.rawHeaders,
      body: bodyOf(incoming),
    });
  }

  #fail(error: unknown): void {
    this.#timer.stop();
    this.#reject(error);
    this.#leave();
  }

  /** Node makes the connection all the same, for a request that is destroyed before, and keeps its body so long. */
  #leave(): void {
    this.#isLeft = true;
    if (this.#isConnecting) this.#stay.waitInVain();
    else this.#stay.over();
  }
}

/** By its parts: a path would be parsed, and the target of the request line is ours to choose. */
function addressOf({ origin }: OutgoingRequest) {
  const { protocol, host, hostname, port } = new URL(origin);
  return { protocol, host, hostname, port: port === '' ? undefined : port };
}

/** Flat, as they came. */
function headersOf(
  { headers, method, body }: OutgoingRequest,
  { keepAlive, connection }: ReservedHeaders,
  host: string,
): string[] {
  const all = ['Host', host, ...headers];
  const length = Buffer.isBuffer(body) ? body.length : body?.length;
  if (body === undefined) {
    if (method !== 'GET' && method !== 'HEAD') all.push('content-length', '0');
  } else if (length !== undefined) all.push('content-length', String(length));
  else all.push('transfer-encoding', 'chunked');
  if (keepAlive !== undefined) all.push('Keep-Alive', keepAlive);
  all.push('Connection', connection ?? 'keep-alive');
  return all;
}

/**
 * The options that http-proxy fills in for node:http. It knows headers by their names alone, which loses
 * the order and the case of repeated ones; node:http sends a flat list as it is.
 */
function optionsWith(headers: readonly string[], watcher: ConnectionWatcher) {
  return {
    [CONNECTION_WATCHER]: watcher,
    get headers() {
      return headers;
    },
    set headers(_byName) {
      // They are ours alone.
    },
  };
}

function streamOf(body: OutgoingRequest['body']): Readable {
  if (body === undefined) return Readable.from([]);
  return Buffer.isBuffer(body) ? Readable.from([body], { objectMode: false }) : body;
}

function limitInformational(made: ClientRequest, abort: (error: ExchangeEnded) => void): void {
  let count = 0;
  made.on('information', ({ statusCode }) => {
    count += 1;
    // Nobody asked for a 100 (RFC 9110 section 10.1.1); undici takes none either.
    const isUnasked = statusCode === 100;
    if (isUnasked || count > INFORMATIONAL_MAX) abort(new ExchangeEnded('informational'));
  });
  // Without a listener node:http closes the connection, and the request never ends.
  made.on('upgrade', (_answer, socket) => {
    socket.destroy();
    abort(new ExchangeEnded('status'));
  });
}

function bodyOf(incoming: IncomingMessage): DestinationBody {
  const body = new DestinationBody({
    pause: () => incoming.pause(),
    resume: () => incoming.resume(),
    abort: () => incoming.destroy(),
  });
  incoming.on('data', (chunk: Buffer) => body.push(chunk));
  incoming.on('end', () => body.end());
  incoming.on('error', (error) => body.fail(error));
  incoming.on('close', () => body.fail(new ExchangeEnded('caller_gone')));
  return body;
}
