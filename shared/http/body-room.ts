/**
 * Memory for bodies that are on their way. Whoever sends large ones slowly, as anybody may to a proxy that needs no
 * key, must not take all there is: the process would be ended, and with it everybody's requests.
 */
import type { ServerResponse } from 'node:http';
import { totalmem } from 'node:os';
import { ApiError } from '../errors.ts';

/** So much of each body is not counted: there is always room for ordinary ones. */
export const UNCOUNTED_BYTES = 256 * 1024;
/** Of the machine's or the container's memory, what large bodies of requests may hold together, and of answers. */
const SHARE = 1 / 4;
const ANSWERS_SHARE = 1 / 8;

export class BodyRoom {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Counts a body that grew. Throws 503 when there is no room for that; `leave` is due all the same. */
  grow(from: number, to: number): void {
    this.#bytes += counted(to) - counted(from);
    if (to > UNCOUNTED_BYTES && this.#bytes > this.#bytesMax) {
      throw new ApiError('unavailable', 'Too many large bodies are on their way; try again', {
        headers: { 'retry-after': '1', connection: 'close' },
      });
    }
  }

  /** Counts a whole body while `work` runs. Rejects with the 503. */
  async during<T>(length: number, work: () => Promise<T>): Promise<T> {
    try {
      this.grow(0, length);
      return await work();
    } finally {
      this.leave(length);
    }
  }

  /** Counts a whole body until the caller was answered, or went. Throws 503. */
  hold(length: number, res: ServerResponse): void {
    if (length <= UNCOUNTED_BYTES || res.destroyed) return;
    res.once('close', () => this.leave(length));
    this.grow(0, length);
  }

  /** Counts a whole body that is there already and cannot be refused any more. */
  keep(length: number): void {
    this.#bytes += counted(length);
  }

  /** The body is whole, or nobody wants it any more. */
  leave(length: number): void {
    this.#bytes -= counted(length);
  }
}

function counted(length: number): number {
  return Math.max(0, length - UNCOUNTED_BYTES);
}

const memory = Math.min(totalmem(), containersMemory());

/** Those of this process. */
export const BODY_ROOM = new BodyRoom(SHARE * memory);
export const ANSWER_ROOM = new BodyRoom(ANSWERS_SHARE * memory);

/** Without a limit that is 0 or more than there is. */
function containersMemory(): number {
  return process.constrainedMemory() || Number.POSITIVE_INFINITY;
}
