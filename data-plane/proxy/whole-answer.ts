/**
 * A destination's answer that is needed whole and in clear, for a transform, a script or a tripwire that
 * masks: all of its body, without its coding, bounded in size and in time.
 */
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib';
import type { ApiError } from '../../shared/errors.ts';
import { GatheredBytes } from '../../shared/gathered-bytes.ts';
import { ANSWER_ROOM, type BodyRoom } from '../../shared/http/body-room.ts';
import { contentCoding, type KnownCoding } from './content-coding.ts';
import { type DestinationBody, PROGRESS_BYTES_MIN, PROGRESS_MS } from './destination-body.ts';
import { type DestinationAnswer, ExchangeEnded } from './exchange.ts';
import { badGateway, destinationError } from './proxy-error.ts';

/** On the wire, and decoded: 165 bytes of brotli are 1 GiB. */
export const TRANSFORMED_BYTES_MAX = 10 * 1024 * 1024;
/** Whoever waits for so many times the period in which something must come waits for nothing. */
const PERIODS_MAX = 10;

const DECODERS = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  br: promisify(brotliDecompress),
  deflate: (bytes: Buffer, options: { maxOutputLength: number }) =>
    // It is zlib's format (RFC 9110 section 8.4.1.2); some servers send the bare one.
    ((bytes[0] ?? 0) & 0x0f) === 8
      ? promisify(inflate)(bytes, options)
      : promisify(inflateRaw)(bytes, options),
} satisfies Record<KnownCoding, unknown>;

/**
 * Throws 502 when it is too large, breaks off, or is not what its coding says; 408 when it does not come on, 503 when
 * there is no room for more large ones: the connection is closed then. `progressMs`: in which time 1 KiB must come.
 */
export async function readWholeAnswer(
  { body, headers }: Pick<DestinationAnswer, 'body' | 'headers'>,
  progressMs = PROGRESS_MS,
  room = ANSWER_ROOM,
): Promise<Buffer> {
  const bytes = body.whole ?? (await collect(body, progressMs, room));
  if (bytes.length > TRANSFORMED_BYTES_MAX) throw tooLarge();
  const coding = contentCoding(headers);
  if (bytes.length === 0 || coding === 'identity') return bytes;
  if (coding === 'other') {
    throw badGateway('The answer of the destination has a Content-Encoding that is not served');
  }
  return decode(bytes, coding);
}

function collect(body: DestinationBody, progressMs: number, room: BodyRoom): Promise<Buffer> {
  const gathered = new GatheredBytes();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let isOver = false;
  const giveUp = (error: unknown): void => {
    isOver = true;
    reject(error);
    body.abort();
  };
  let periods = 0;
  let before = 0;
  const timer = setInterval(() => {
    periods += 1;
    const isStalled = gathered.length - before < PROGRESS_BYTES_MIN || periods >= PERIODS_MAX;
    if (isStalled) giveUp(destinationError(new ExchangeEnded('timeout')));
    before = gathered.length;
  }, progressMs);
  body.deliverTo({
    data(chunk) {
      if (isOver) return true;
      const before = gathered.length;
      gathered.push(chunk);
      try {
        room.grow(before, gathered.length);
        if (gathered.length > TRANSFORMED_BYTES_MAX) throw tooLarge();
      } catch (error) {
        giveUp(error);
      }
      return true;
    },
    end() {
      isOver = true;
      resolve(gathered.whole());
    },
    fail(error) {
      isOver = true;
      reject(destinationError(error));
    },
  });
  return promise.finally(() => {
    clearInterval(timer);
    room.leave(gathered.length);
  });
}

async function decode(bytes: Buffer, coding: KnownCoding): Promise<Buffer> {
  try {
    return await DECODERS[coding](bytes, { maxOutputLength: TRANSFORMED_BYTES_MAX });
  } catch (error) {
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    if (code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw badGateway('The answer of the destination does not match its Content-Encoding', error);
  }
}

function tooLarge(): ApiError {
  return badGateway(`The answer of the destination is over ${TRANSFORMED_BYTES_MAX} bytes`);
}
