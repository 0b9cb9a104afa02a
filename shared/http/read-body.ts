/**
 * Reads a whole request body into memory, never more of it than the limit. Works on the plain
 * request of either plane (`ctx.req` in Koa), before anything else has consumed it.
 */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../errors.ts';
import { GatheredBytes } from '../gathered-bytes.ts';
import { BODY_ROOM, type BodyRoom } from './body-room.ts';
import { type Coding, decompress, readCoding } from './decompress.ts';
import { isTooLate } from './slow-bodies.ts';

/**
 * Of a body that is too large this much is read and thrown away before the answer: closing with
 * unread bytes makes TCP reset the connection, and the client never sees its 413.
 */
const DISCARD_BYTES_MAX = 8 * 1024 * 1024;
const DISCARD_MS_MAX = 1000;

const EMPTY = Buffer.alloc(0);

export interface BodyOptions {
  /** Largest body in bytes, on the wire and decoded. */
  limitBytes: number;
  /** The `Content-Encoding` header. */
  contentEncoding?: string | undefined;
  room?: BodyRoom;
}

/**
 * The body's bytes, decoded; empty when the request has none. A promise unless they are here. Throws 413 above the limit (the
 * connection closes), 415 for an unknown coding, 400 for a broken one or when the client went away, 503 when there is no
 * room for more large ones.
 */
export function readBody(req: IncomingMessage, options: BodyOptions): Promise<Buffer> | Buffer {
  const coding = readCoding(options.contentEncoding);
  const reading = readWireBytes(req, options);
  if (coding === 'identity') return reading;
  return decodeWhole(reading, coding, options.limitBytes);
}

async function decodeWhole(
  reading: Promise<Buffer> | Buffer,
  coding: Exclude<Coding, 'identity'>,
  limitBytes: number,
): Promise<Buffer> {
  const bytes = await reading;
  return bytes.length === 0 ? bytes : decompress(bytes, coding, limitBytes);
}

/** Whether a client that waits for 100 shall send its body: not what is announced as too large. */
export function mayBeRead(
  { contentLength = 0 }: { readonly contentLength: number | undefined },
  limitBytes: number,
): boolean {
  return contentLength <= limitBytes;
}

function readWireBytes(
  req: IncomingMessage,
  { limitBytes, room = BODY_ROOM }: BodyOptions,
): Promise<Buffer> | Buffer {
  const { 'content-length': length, 'transfer-encoding': encoding } = req.headers;
  if (encoding === undefined && (length === undefined || length === '0')) return EMPTY;
  if (Number(length) > limitBytes || req.readableLength > limitBytes) {
    return refuseTooLarge(req, limitBytes);
  }
  // Already here in full, as it mostly is after a drained turn: no listeners, no waiting.
  if (req.complete && req.readableLength > 0) return req.read();
  return collect(req, limitBytes, room);
}

function collect(req: IncomingMessage, limitBytes: number, room: BodyRoom): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const gathered = new GatheredBytes();
    const stop = () => {
      req.off('data', take).off('end', end).off('error', gone).off('close', gone);
      room.leave(gathered.length);
    };
    const take = (chunk: Buffer) => {
      const before = gathered.length;
      gathered.push(chunk);
      try {
        room.grow(before, gathered.length);
        if (gathered.length > limitBytes) throw tooLarge(limitBytes);
      } catch (error) {
        stop();
        void discardBody(req).then(() => reject(error));
      }
    };
    const end = () => {
      stop();
      // Nobody is told of this error: the sender has its 408.
      if (isTooLate(req)) reject(new ApiError('bad_request', 'The body came too late'));
      else resolve(gathered.whole());
    };
    const gone = () => {
      stop();
      reject(new ApiError('bad_request', 'The connection ended before the body was complete'));
    };
    req.on('data', take).on('end', end).on('error', gone).on('close', gone);
    if (req.destroyed) gone();
  });
}

/** Always rejects with the 413, once the client has sent all, or as much as is worth reading. */
async function refuseTooLarge(req: IncomingMessage, limitBytes: number): Promise<never> {
  await discardBody(req);
  throw tooLarge(limitBytes);
}

function tooLarge(limitBytes: number): ApiError {
  return new ApiError('payload_too_large', `The body is over ${limitBytes} bytes`, {
    headers: { connection: 'close' },
  });
}

/**
 * Reads the rest of a body to nowhere, at most 8 MiB or 1 s of it; resolves when it is at its end
 * or not worth more. For an answer that closes the connection: first this, then the answer.
 */
export function discardBody(req: IncomingMessage): Promise<void> {
  // A client that waits for 100 sends nothing before our answer.
  if (req.complete || req.destroyed || req.headers.expect !== undefined) return Promise.resolve();
  return new Promise((resolve) => {
    let total = 0;
    const stop = () => {
      clearTimeout(timer);
      req.off('data', drop).off('end', stop).off('error', stop).off('close', stop);
      resolve();
    };
    const timer = setTimeout(stop, DISCARD_MS_MAX);
    const drop = (chunk: Buffer) => {
      total += chunk.length;
      if (total > DISCARD_BYTES_MAX) stop();
    };
    req.on('data', drop).on('end', stop).on('error', stop).on('close', stop);
    // Whoever read it before may have paused it.
    req.resume();
  });
}
