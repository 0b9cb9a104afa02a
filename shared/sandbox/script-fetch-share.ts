/**
 * What one tenant's fetches hold of the gateway: requests under way, their bytes, and connections
 * of its own. Connections are never shared between tenants: what one of them smuggles into a connection
 * would meet the next request on it.
 */
import type { Agent } from 'undici';
import type { Room } from './script-fetch-body.ts';
import { fetchError } from './script-fetch-failure.ts';

export interface ShareLimits {
  /** Requests of a tenant under way; more wait for their turn. */
  readonly tenantRequestsMax: number;
  /** Requests of a tenant that wait; one more fails. */
  readonly tenantWaitingMax: number;
  /** Bytes of requests and responses that are held for a tenant, and for all of them. */
  readonly tenantBytesMax: number;
  readonly bytesMax: number;
}

/** Bytes held for all tenants. */
export interface Held {
  bytes: number;
}

export class TenantFetches {
  readonly agent: Agent;
  readonly #limits: ShareLimits;
  readonly #held: Held;
  readonly #waiting = new Set<() => void>();
  #running = 0;
  #bytes = 0;

  constructor(agent: Agent, limits: ShareLimits, held: Held) {
    this.agent = agent;
    this.#limits = limits;
    this.#held = held;
  }

  get isIdle(): boolean {
    return this.#running === 0 && this.#waiting.size === 0;
  }

  /**
   * Does one request's work when it is its turn. `bytes`: what the request holds by itself, from now; it
   * is given back at the end, with what the work took.
   */
  async run<T>(signal: AbortSignal, bytes: number, work: (room: Room) => Promise<T>): Promise<T> {
    let taken = 0;
    const take = (more: number): void => {
      this.#take(more);
      taken += more;
    };
    try {
      take(bytes);
      await this.#turn(signal);
      return await work({ take }).finally(() => this.#next());
    } finally {
      this.#bytes -= taken;
      this.#held.bytes -= taken;
    }
  }

  #take(bytes: number): void {
    const { tenantBytesMax, bytesMax } = this.#limits;
    const isTooMuch = this.#bytes + bytes > tenantBytesMax || this.#held.bytes + bytes > bytesMax;
    if (isTooMuch) throw fetchError('too_much_data');
    this.#bytes += bytes;
    this.#held.bytes += bytes;
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#running < this.#limits.tenantRequestsMax) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.size >= this.#limits.tenantWaitingMax) throw fetchError('too_many_requests');
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.delete(begin);
        reject(signal.reason);
      };
      this.#waiting.add(begin);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Hands the turn of who has finished to who has waited longest. */
  #next(): void {
    const [begin] = this.#waiting;
    if (begin === undefined) this.#running -= 1;
    else {
      this.#waiting.delete(begin);
      begin();
    }
  }
}
