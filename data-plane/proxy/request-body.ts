/**
 * The caller's body as it streams to a destination. A stream of its own: whoever sends it may end it at
 * any time, and the caller's connection must outlive that to carry the answer.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { allowLongBody, isTooLate } from '../../shared/http/slow-bodies.ts';

const HELD_BYTES_MAX = 64 * 1024;

export class RequestBody extends Readable {
  /** Bytes, when the caller announced them. */
  readonly length: number | undefined;
  readonly #req: IncomingMessage;
  #received = 0;
  #isAllHere = false;
  /** As of the last look at `heldMs`. */
  #taken = 0;
  /** On the monotonic clock. */
  #movedAtMs = 0;

  constructor(req: IncomingMessage, length: number | undefined) {
    super({ highWaterMark: HELD_BYTES_MAX });
    this.length = length;
    this.#req = req;
    allowLongBody(req, () => this.#received);
    // Told to whoever sends it; nobody else listens, and an error must not end the process.
    this.on('error', () => undefined);
    req.on('data', this.#take).on('end', this.#end).on('error', this.#lost).on('close', this.#lost);
    req.pause();
    if (req.destroyed) this.#lost();
  }

  /** For how long nobody has taken what is here, in milliseconds; 0 while the caller is waited for. */
  get heldMs(): number {
    const now = performance.now();
    const taken = this.#received - this.readableLength;
    const isHeld = this.readableLength > 0 || this.#isAllHere;
    if (!isHeld || taken > this.#taken) this.#movedAtMs = now;
    this.#taken = taken;
    return now - this.#movedAtMs;
  }

  override _read(): void {
    this.#req.resume();
  }

  /** Before its end: the rest is read to nowhere, so that the connection gets to its next request. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const req = this.#req;
    req.off('data', this.#take).off('end', this.#end);
    req.off('error', this.#lost).off('close', this.#lost);
    // The rest of a broken connection is reported to somebody.
    req.on('error', () => undefined);
    if (!req.readableEnded) req.resume();
    done(error);
  }

  readonly #take = (chunk: Buffer): void => {
    if (isTooLate(this.#req)) {
      this.#lost();
      return;
    }
    if (this.readableLength === 0) this.#movedAtMs = performance.now();
    this.#received += chunk.length;
    if (!this.push(chunk)) this.#req.pause();
  };

  readonly #end = (): void => {
    if (isTooLate(this.#req)) {
      this.#lost();
      return;
    }
    if (this.readableLength === 0) this.#movedAtMs = performance.now();
    this.#isAllHere = true;
    this.push(null);
  };

  readonly #lost = (): void => {
    // Also when all of it has come: what was not taken yet went with the connection.
    if (!this.#isAllHere) this.destroy(new Error('the caller is gone'));
  };
}
