/**
 * The body of a destination's answer on its way: held until somebody takes it, then handed on as it
 * comes, no faster than it is taken.
 */

/** A body that brings less than this in each such time holds a connection for nothing. */
export const PROGRESS_MS = 25_000;
export const PROGRESS_BYTES_MIN = 1_024;

export interface BodySink {
  /** False: no more until `resume` of the body is called. */
  data(chunk: Buffer): boolean;
  end(): void;
  /** The body is not complete and never will be. */
  fail(error: unknown): void;
}

/** The connection that the body comes from. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** Closes the connection. */
  abort(): void;
}

type Ending = { readonly kind: 'end' } | { readonly kind: 'fail'; readonly error: unknown };

export class DestinationBody {
  readonly #source: BodySource;
  #held: Buffer[] = [];
  #ending: Ending | undefined;
  #sink: BodySink | undefined;

  constructor(source: BodySource) {
    this.#source = source;
  }

  /** Everything of it that there will be, if it has already come as at most one piece. */
  get whole(): Buffer | undefined {
    if (this.#ending?.kind !== 'end' || this.#held.length > 1) return undefined;
    return this.#held[0] ?? Buffer.alloc(0);
  }

  push(chunk: Buffer): void {
    if (this.#sink === undefined) {
      this.#held.push(chunk);
      // One piece may wait: mostly it is all there is, and its end comes along.
      if (this.#held.length > 1) this.#source.pause();
    } else if (!this.#sink.data(chunk)) {
      this.#source.pause();
    }
  }

  end(): void {
    this.#finish({ kind: 'end' });
  }

  fail(error: unknown): void {
    this.#finish({ kind: 'fail', error });
  }

  /** Called once. What was held comes now. */
  deliverTo(sink: BodySink): void {
    this.#sink = sink;
    const held = this.#held;
    this.#held = [];
    // All that is held is handed over, taken or not: it is in memory anyway.
    let isTaken = true;
    for (const chunk of held) isTaken = sink.data(chunk) && isTaken;
    if (this.#ending !== undefined) this.#announce(sink, this.#ending);
    else if (isTaken) this.#source.resume();
  }

  resume(): void {
    if (this.#ending === undefined) this.#source.resume();
  }

  /** Nobody wants the rest. */
  abort(): void {
    if (this.#ending !== undefined) return;
    this.#source.abort();
  }

  #finish(ending: Ending): void {
    if (this.#ending !== undefined) return;
    this.#ending = ending;
    if (this.#sink !== undefined) this.#announce(this.#sink, ending);
  }

  #announce(sink: BodySink, ending: Ending): void {
    if (ending.kind === 'end') sink.end();
    else sink.fail(ending.error);
  }
}
