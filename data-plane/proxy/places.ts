/**
 * As many requests of a tenant are under way to one destination as it may have connections there. The others
 * wait here, before anything of them is handed to an engine, which would queue them without asking again whether
 * they may still be sent (in-turn.ts).
 */
import { CONNECTIONS_MAX } from '../../shared/egress/create-egress.ts';

/** Requests of a tenant that wait, at all its destinations: each holds a connection and its body meanwhile. */
export const WAITING_MAX = 1_000;

export interface Place {
  /** To be called when the request is over, however it ended; further calls do nothing. */
  leave(): void;
}

interface Destination {
  taken: number;
  /** In the order in which they came. */
  readonly waiting: Set<() => void>;
}

/** So many wait already that one more is not let in. */
export class TooManyWaitError extends Error {}

/** Of one tenant. */
export class Places {
  readonly #max: number;
  readonly #waitingMax: number;
  readonly #destinations = new Map<string, Destination>();
  #waiting = 0;

  /** `max`: at one destination. `waitingMax`: at all of them. */
  constructor(max = CONNECTIONS_MAX, waitingMax = WAITING_MAX) {
    this.#max = max;
    this.#waitingMax = waitingMax;
  }

  /** `undefined` where one must wait. */
  enter(origin: string): Place | undefined {
    const at = this.#destinations.get(origin) ?? { taken: 0, waiting: new Set() };
    if (at.taken >= this.#max) return undefined;
    at.taken += 1;
    this.#destinations.set(origin, at);
    return this.#placeAt(origin, at);
  }

  /** Rejects with the signal's reason, and with `TooManyWaitError`. */
  async wait(origin: string, signal: AbortSignal): Promise<Place> {
    signal.throwIfAborted();
    const free = this.enter(origin);
    if (free !== undefined) return free;
    if (this.#waiting >= this.#waitingMax) throw new TooManyWaitError();
    const at = this.#destinations.get(origin) as Destination;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = (): void => {
      // At once: else the next place would be handed to nobody.
      at.waiting.delete(resolve);
      reject(signal.reason);
    };
    at.waiting.add(resolve);
    this.#waiting += 1;
    signal.addEventListener('abort', giveUp, { once: true });
    await promise.finally(() => {
      this.#waiting -= 1;
      signal.removeEventListener('abort', giveUp);
    });
    return this.#placeAt(origin, at);
  }

  #placeAt(origin: string, at: Destination): Place {
    let isTaken = true;
    return {
      leave: () => {
        if (!isTaken) return;
        isTaken = false;
        const [next] = at.waiting;
        if (next !== undefined) {
          // It has this place from now on.
          at.waiting.delete(next);
          next();
          return;
        }
        at.taken -= 1;
        if (at.taken === 0) this.#destinations.delete(origin);
      },
    };
  }
}
