/**
 * How both planes listen: limits of the HTTP parser, and the answers to what it refuses before
 * there is a request. Answers here are written to the socket and must never echo input, nor land
 * in the place of another request's answer.
 */
import type {
  IncomingMessage,
  RequestListener,
  Server,
  ServerOptions,
  ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError, type ErrorCode } from '../errors.ts';
import { CORS_HEADERS } from './cors.ts';
import { PROBLEM_MEDIA_TYPE } from './media-type.ts';
import { ALLOW_HEADER } from './methods.ts';
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
  /** A 5 MiB body in 30 s is 1.4 Mbit/s. */
  requestTimeout: 30_000,
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

/**
 * Sends every parsed request to `onRequest`, those with an `Expect` header included (the strict
 * layer answers 417, or the route calls `res.writeContinue()` after authentication), and answers
 * the others here. There is deliberately no 'upgrade' listener: an upgrade request arrives as an
 * ordinary one, with its bytes still parsed as HTTP, and is refused by the strict layer.
 */
export function guardListener(server: Server, onRequest: RequestListener): void {
  const unlessCondemned: RequestListener = (req, res) => {
    if (!isCondemned(req.socket)) onRequest(req, res);
  };
  // Node would drop headers above its default count in silence; maxHeaderSize bounds them already.
  server.maxHeadersCount = 0;
  server.on('request', unlessCondemned);
  server.on('checkContinue', unlessCondemned);
  server.on('checkExpectation', unlessCondemned);
  server.on('connect', (_req, socket) => socket.destroy());
  server.on('clientError', answerParserError);
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

/**
 * What node:http keeps on a server's socket: the answer being made, and the request being parsed.
 * Neither is public, and nothing public tells whose bytes were broken; tests hold both.
 */
interface ServerSocket extends Socket {
  _httpMessage?: ServerResponse | null;
  parser?: { incoming: IncomingMessage | null } | null;
}

/**
 * Listener of 'clientError': one complete problem+json answer, then the connection ends. When an
 * earlier request of the connection still waits for its answer, that one is the last; when the
 * broken request has been answered already, there is none.
 */
export function answerParserError(error: ParserError, stream: Duplex): void {
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
    endWith(socket, parserAnswer(error));
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

function parserAnswer(error: ParserError): string {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return rawAnswer('request_timeout', 'The request did not arrive in time');
    case 'HPE_HEADER_OVERFLOW':
      return rawAnswer('headers_too_large', 'Request line and headers are over 16,384 bytes');
    case 'HPE_INVALID_METHOD':
      if (looksLikeMethod(error))
        return rawAnswer('method_not_allowed', 'This method is not served');
      break;
    default:
  }
  return rawAnswer('bad_request', 'The request is not valid HTTP/1.1');
}

/** A line that begins with letters and a space is an unknown method (`GeT /`), not another protocol. */
function looksLikeMethod(error: ParserError): boolean {
  const packet = error.rawPacket;
  if (packet === undefined) return false;
  const lineStart = packet.lastIndexOf(0x0a, error.bytesParsed ?? 0) + 1;
  const line = packet.toString('latin1', lineStart, lineStart + 32);
  return /^[A-Za-z]{1,30} /.test(line);
}

/** A whole HTTP/1.1 answer; `detail` is constant text. */
function rawAnswer(code: ErrorCode, detail: string): string {
  const problem = new ApiError(code, detail).toProblem();
  const body = JSON.stringify(problem);
  const lines = [
    `HTTP/1.1 ${problem.status} ${problem.title}`,
    `content-type: ${PROBLEM_MEDIA_TYPE}`,
    `content-length: ${body.length}`,
    'cache-control: no-store',
    `bt-trace-id: ${newTraceId()}`,
    'connection: close',
  ];
  if (code === 'method_not_allowed') lines.push(`allow: ${ALLOW_HEADER}`);
  for (let index = 0; index < CORS_HEADERS.length; index += 2) {
    lines.push(`${CORS_HEADERS[index]}: ${CORS_HEADERS[index + 1]}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
