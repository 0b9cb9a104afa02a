/**
 * A destination's answer on its way to the caller: status, headers and body as they are. An answer that
 * breaks off is never ended properly: the caller's connection is reset.
 */
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ResponseContext } from '../answer.ts';
import { endTogether } from '../end-together.ts';
import { type DestinationBody, PROGRESS_BYTES_MIN, PROGRESS_MS } from './destination-body.ts';
import type { DestinationAnswer } from './exchange.ts';
import { addedHeaders, firstHeader, returnedHeaders } from './headers.ts';
import { invalidAnswer } from './proxy-error.ts';

/** Up to this a body is written as one text with its head: cheaper than two buffers, if copied twice. */
const ONE_TEXT_BYTES_MAX = 8 * 1024;

/** `gone`: the caller did not wait for the end. */
export type Delivery = 'complete' | 'reset' | 'gone';

/** Writes status and headers; throws 502 when they cannot be written as they are. */
export function writeHead(
  res: ServerResponse,
  { status, headers }: Pick<DestinationAnswer, 'status' | 'headers'>,
  context: ResponseContext,
  length?: number,
): void {
  const isBodiless = status === 204;
  const flat = returnedHeaders(headers, length === undefined && !isBodiless);
  flat.push('bt-proxy-destination-status', String(status), ...addedHeaders(flat, context.traceId));
  if (length !== undefined && !isBodiless) flat.push('content-length', String(length));
  // An answer that is there before its request is: what follows on the connection is still that.
  if (context.close || !res.req.complete) flat.push('connection', 'close');
  // Whether such a body is whole nobody knows: ours must not end better than the destination's.
  if (length === undefined && mayHaveBody(status, res) && !isFramed(headers)) {
    res.useChunkedEncodingByDefault = false;
  }
  try {
    res.writeHead(status, flat);
  } catch (error) {
    throw invalidAnswer(error);
  }
}

/** RFC 9112 section 6.3: the others end with their heads. */
function mayHaveBody(status: number, { req }: ServerResponse): boolean {
  return status !== 204 && status !== 304 && req.method !== 'HEAD';
}

/**
 * A coding of the transfer other than `chunked` at its end leaves the end to the connection (RFC 9112
 * section 6.3), whatever else is there. Read as the parsers of both engines do: no tab behind it.
 */
function isFramed(headers: readonly string[]): boolean {
  if (firstHeader(headers, 'transfer-encoding') === undefined) {
    return firstHeader(headers, 'content-length') !== undefined;
  }
  const last = headers.findLastIndex(
    (name, index) => index % 2 === 0 && name.toLowerCase() === 'transfer-encoding',
  );
  return /(?:^|,)[ \t]*chunked *$/i.test(headers[last + 1] as string);
}

/**
 * Hands the body on as it comes; a promise, unless it is here, that settles when nothing more will be written.
 * `progressMs`: in which time something must move.
 */
export function deliver(
  body: DestinationBody,
  res: ServerResponse,
  progressMs = PROGRESS_MS,
): Delivery | Promise<Delivery> {
  const { whole } = body;
  if (whole !== undefined) {
    if (whole.length > ONE_TEXT_BYTES_MAX) endTogether(res, whole);
    else endTogether(res, whole.toString('latin1'), 'latin1');
    return 'complete';
  }
  return new Promise((resolve) => {
    const watch = watchProgress(res, progressMs, () => {
      body.abort();
      resetConnection(res);
    });
    const settle = (delivery: Delivery): void => {
      watch.stop();
      res.off('drain', resume).off('close', gone);
      resolve(delivery);
    };
    const resume = (): void => body.resume();
    const gone = (): void => {
      settle('gone');
      body.abort();
    };
    res.on('drain', resume).on('close', gone);
    body.deliverTo({
      data(chunk) {
        watch.count(chunk.length);
        return res.write(chunk);
      },
      end() {
        res.end();
        settle('complete');
      },
      fail() {
        settle('reset');
        resetConnection(res);
      },
    });
  });
}

/** Calls `onStall` when within one period neither side moved on. */
function watchProgress(
  res: ServerResponse,
  progressMs: number,
  onStall: () => void,
): { count(bytes: number): void; stop(): void } {
  let received = 0;
  let taken = res.socket?.bytesWritten ?? 0;
  const timer = setInterval(() => {
    const written = res.socket?.bytesWritten ?? 0;
    // A caller who takes what waits for it is not to blame for a destination that is held back.
    const isTaken = res.writableNeedDrain && written > taken;
    // Nor is one whose earlier answers on its connection are still on their way.
    const isQueued = res.socket === null && !res.req.socket.destroyed;
    if (isQueued) return;
    if (received < PROGRESS_BYTES_MIN && !isTaken) onStall();
    received = 0;
    taken = written;
  }, progressMs);
  return {
    count: (bytes) => {
      received += bytes;
    },
    stop: () => clearInterval(timer),
  };
}

/**
 * With a reset: a mere end is the end of an answer to an old client. What waits for earlier answers of its
 * connection ends that when its turn comes, before anything of it is written.
 */
export function resetConnection(res: ServerResponse): void {
  const { socket } = res;
  if (socket === null) res.once('socket', (later) => later.destroy());
  else if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
  else socket.destroy();
}
