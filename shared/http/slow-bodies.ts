/**
 * How long the body of a request may take. node:http has one limit, from the first byte of a request to its
 * last, which would end every large upload over a slow line; so it is told none, and bodies are watched here:
 * one that is read whole, or not at all, has its time, one that passes through goes on while it moves.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { ServerSocket } from './server-socket.ts';

export interface BodyLimits {
  /** For all of a body, from the end of its head. */
  readonly wholeMs: number;
  /** One that passes through must bring `progressBytes` in each such time. */
  readonly progressMs: number;
  readonly progressBytes: number;
  readonly checkEachMs: number;
}

export const BODY_LIMITS: BodyLimits = {
  /** 5 MiB in 30 s are 1.4 Mbit/s. */
  wholeMs: 30_000,
  progressMs: 25_000,
  progressBytes: 1_024,
  checkEachMs: 500,
};

/** To how much of the body has come. */
const passing = new WeakMap<IncomingMessage, () => number>();
const tooLate = new WeakSet<IncomingMessage>();

/** The body is handed on as it comes, and kept by nobody: it may take as long as it moves. */
export function allowLongBody(req: IncomingMessage, received: () => number): void {
  passing.set(req, received);
}

/** Whether its sender was told 408: what comes all the same must have no effect. */
export function isTooLate(req: IncomingMessage): boolean {
  return tooLate.has(req);
}

/** A body that is on its way. Times are of the monotonic clock. */
interface Arrival {
  readonly req: IncomingMessage;
  readonly sinceMs: number;
  /** When it last had brought enough, and what had come until then. */
  movedAtMs: number;
  movedAtBytes: number;
}

/** Calls `onSlow` once for each connection whose request does not get on; it must end the connection. */
export function watchBodies(
  server: Server,
  onSlow: (socket: ServerSocket) => void,
  limits: BodyLimits = BODY_LIMITS,
): void {
  const connections = new Map<ServerSocket, Arrival | undefined>();

  function check(): void {
    const now = performance.now();
    for (const [socket, known] of connections) {
      const req = socket.parser?.incoming;
      if (req === null || req === undefined || req.complete) {
        if (known !== undefined) connections.set(socket, undefined);
        continue;
      }
      const arrival = known?.req === req ? known : arrivalOf(req, now);
      connections.set(socket, arrival);
      if (!isLate(arrival, now, limits)) continue;
      connections.delete(socket);
      tooLate.add(req);
      onSlow(socket);
    }
  }

  function add(socket: ServerSocket): void {
    connections.set(socket, undefined);
    socket.once('close', () => connections.delete(socket));
  }
  // With TLS both come, and only the second of the two has a parser.
  server.on('connection', add).on('secureConnection', add);
  server.on('listening', () => {
    const timer = setInterval(check, limits.checkEachMs).unref();
    server.once('close', () => clearInterval(timer));
  });
}

function arrivalOf(req: IncomingMessage, now: number): Arrival {
  return { req, sinceMs: now, movedAtMs: now, movedAtBytes: passing.get(req)?.() ?? 0 };
}

function isLate(
  arrival: Arrival,
  now: number,
  { wholeMs, progressMs, progressBytes }: BodyLimits,
): boolean {
  const received = passing.get(arrival.req)?.();
  if (received === undefined) return now - arrival.sinceMs >= wholeMs;
  // What is here and not taken was not late; whoever should take it is watched elsewhere.
  const isHeldBack = arrival.req.readableLength > 0;
  if (isHeldBack || received - arrival.movedAtBytes >= progressBytes) {
    arrival.movedAtMs = now;
    arrival.movedAtBytes = received;
  }
  return now - arrival.movedAtMs >= progressMs;
}
