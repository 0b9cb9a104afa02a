/**
 * How both planes listen: limits of the HTTP parser, and the answers to what it refuses before
 * there is a request. Answers here are written to the socket and must never echo input, nor land
 * in the place of another request's answer.
 */
import type { RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError } from '../errors.ts';
import { CORS_HEADERS } from './cors.ts';
import { JSON_MEDIA_TYPE, PROBLEM_MEDIA_TYPE } from './media-type.ts';
import { ALLOW_HEADER } from './methods.ts';
import type { ServerSocket } from './server-socket.ts';
import { type BodyLimits, watchBodies } from './slow-bodies.ts';
import { newTraceId } from './trace-id.ts';

/** For http.createServer and https.createServer. Times in milliseconds, sizes in bytes. */
export const LISTENER_OPTIONS = {
  /** Request line and headers; twice what a long target and 100 ordinary headers need. */
  maxHeaderSize: 16 * 1024,
  insecureHTTPParser: false,
  /** Checked by the strict layer, which answers with a body; Node's own answer has none. */
  requireHostHeader: false,
  /** Slow headers are cut before 6 s, checking interval included (faults F-25). */
  headersTimeout: 5_000,
  /** Bodies have limits of their own (slow-bodies.ts). */
  requestTimeout: 0,
  connectionsCheckingInterval: 500,
  /** Longer than the 60 s of common load balancers, so that they close first and race nothing. */
  keepAliveTimeout: 65_000,
  noDelay: true,
  keepAlive: true,
  /** When a silent peer is first probed: half-open connections of dead clients go away. */
  keepAliveInitialDelay: 60_000,
  /** One read of the socket; a typical request is under 4 KiB. */
  highWaterMark: 64 * 1024,
} as const satisfies ServerOptions;

/** How long a refused client may go on sending while our answer travels. */
const LINGER_MS = 1_000;

export interface ListenerRules {
  /** What takes the place of problem details for a request to `url`: JSON; `undefined`: nothing does. */
  readonly errorBody?: (error: ApiError, url: string) => string | undefined;
  readonly bodies?: BodyLimits;
}

/**
 * Sends every parsed request to `onRequest`, those with an `Expect` header included (the strict
 * layer answers 417, or the route calls `res.writeContinue()` after authentication), and answers
 * the others here. There is deliberately no 'upgrade' listener: an upgrade request arrives as an
 * ordinary one, with its bytes still parsed as HTTP, and is refused by the strict layer.
 */
export function guardListener(
  server: Server,
  onRequest: RequestListener,
  { errorBody, bodies }: ListenerRules = {},
): void {
  const unlessCondemned: RequestListener = (req, res) => {
    if (!isCondemned(req.socket)) onRequest(req, res);
  };
  // Node would drop headers above its default count in silence; maxHeaderSize bounds them already.
  server.maxHeadersCount = 0;
  server.on('request', unlessCondemned);
  server.on('checkContinue', unlessCondemned);
  server.on('checkExpectation', unlessCondemned);
  server.on('connect', (_req, socket) => socket.destroy());
  const refuse = (error: ParserError, socket: Duplex): void =>
    answerParserError(error, socket, errorBody);
  server.on('clientError', refuse);
  watchBodies(server, (socket) => refuse(new LateBody(), socket), bodies);
}

const condemned = new WeakSet<Duplex>();

/**
 * To be called, in the turn of the refusal, for a request that is refused with `close`: what was
 * sent behind it is never served. Node itself goes on parsing and emitting requests that came in
 * the same read, although the answer says `Connection: close`.
 */
export function condemn(socket: Duplex): void {
  condemned.add(socket);
}

/** For requests that were queued before the one ahead of them was refused. */
export function isCondemned(socket: Duplex): boolean {
  return condemned.has(socket);
}

/** The part of a ParserError that this file reads. */
interface ParserError extends Error {
  code?: string;
  bytesParsed?: number;
  rawPacket?: Buffer;
}

/** As node:http tells that a head is late. */
class LateBody extends Error implements ParserError {
  readonly code = 'ERR_HTTP_REQUEST_TIMEOUT';
}

/**
 * Listener of 'clientError': one complete problem+json answer, then the connection ends. When an
 * earlier request of the connection still waits for its answer, that one is the last; when the
 * broken request has been answered already, there is none.
 */
function answerParserError(
  error: ParserError,
  stream: Duplex,
  errorBody: ListenerRules['errorBody'],
): void {
  const socket: ServerSocket = stream as Socket;
  // Every further read of a broken connection is reported again, while the answer still travels.
  if (socket.writableEnded) return;
  const answering = socket._httpMessage ?? undefined;
  if (!socket.writable || !isAnswerable(error.code)) {
    socket.destroy();
  } else if (answering?.req.complete === true) {
    endAfter(answering, socket);
  } else if (answering === undefined ? isBodyBroken(socket) : answering.headersSent) {
    socket.destroy();
  } else {
    // What still comes is read, and nothing of it is served: its sender was told that it is not.
    condemn(socket);
    endWith(socket, rawAnswer(refusalOf(error), socket, errorBody));
  }
}

/** With no answer being made: the body of a request that was answered before it was complete. */
function isBodyBroken(socket: ServerSocket): boolean {
  return socket.parser?.incoming?.complete === false;
}

function isAnswerable(code: string | undefined): boolean {
  return code?.startsWith('HPE_') === true || code === 'ERR_HTTP_REQUEST_TIMEOUT';
}

/** The answer in progress belongs to a good request: it stays whole and says `Connection: close`. */
function endAfter(current: ServerResponse, socket: Socket): void {
  current.shouldKeepAlive = false;
  if (current.headersSent) current.once('finish', () => socket.destroySoon());
}

/**
 * Half-closes after the answer and reads on for a moment: destroying a socket with unread bytes
 * sends a reset that can overtake the answer.
 */
function endWith(socket: Socket, answer: string): void {
  socket.end(answer, 'latin1');
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

function refusalOf(error: ParserError): ApiError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', 'The request did not arrive in time');
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('headers_too_large', 'Request line and headers are over 16,384 bytes');
    case 'HPE_INVALID_METHOD':
      if (looksLikeMethod(error)) {
        return new ApiError('method_not_allowed', 'This method is not served');
      }
      break;
    default:
  }
  return new ApiError('bad_request', 'The request is not valid HTTP/1.1');
}

/** A line that begins with letters and a space is an unknown method (`GeT /`), not another protocol. */
function looksLikeMethod(error: ParserError): boolean {
  const packet = error.rawPacket;
  if (packet === undefined) return false;
  const lineStart = packet.lastIndexOf(0x0a, error.bytesParsed ?? 0) + 1;
  const line = packet.toString('latin1', lineStart, lineStart + 32);
  return /^[A-Za-z]{1,30} /.test(line);
}

/** A whole HTTP/1.1 answer. What is broken or late before its head is complete is no request to anything. */
function rawAnswer(
  error: ApiError,
  { parser }: ServerSocket,
  errorBody: ListenerRules['errorBody'],
): string {
  const problem = error.toProblem();
  const request = parser?.incoming;
  const own = request?.complete === false ? errorBody?.(error, request.url ?? '') : undefined;
  const body = own ?? JSON.stringify(problem);
  const lines = [
    `HTTP/1.1 ${problem.status} ${problem.title}`,
    `content-type: ${own === undefined ? PROBLEM_MEDIA_TYPE : JSON_MEDIA_TYPE}`,
    `content-length: ${body.length}`,
    'cache-control: no-store',
    `bt-trace-id: ${newTraceId()}`,
    'connection: close',
  ];
  if (error.code === 'method_not_allowed') lines.push(`allow: ${ALLOW_HEADER}`);
  for (let index = 0; index < CORS_HEADERS.length; index += 2) {
    lines.push(`${CORS_HEADERS[index]}: ${CORS_HEADERS[index + 1]}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
