/**
 * Room for large pages of tokens: from before their tokens are read until they were sent, or given up. A
 * tenant that asks for many at once waits for itself; without this it held up everybody, and readers that
 * take nothing held a page of memory each.
 */
import { ApiError } from '../shared/errors.ts';

const MIB = 1024 * 1024;

export interface PageRoomLimits {
  /** Bytes of the pages of one tenant that may be under way at once; one page always may. */
  readonly tenant_bytes_max: number;
  /** Of all tenants in one process. */
  readonly bytes_max: number;
  /** Requests of one tenant that may wait for room. */
  readonly tenant_waiting_max: number;
  readonly wait_ms: number;
}

const LIMITS: PageRoomLimits = {
  ...{ tenant_bytes_max: 32 * MIB, bytes_max: 128 * MIB },
  ...{ tenant_waiting_max: 32, wait_ms: 2_000 },
};

interface Waiting {
  readonly tenant_id: string;
  readonly bytes: number;
  readonly admit: () => void;
}

export class PageRoom {
  readonly #limits: PageRoomLimits;
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;
  /** First come, first served, but for tenants that have no room of their own. */
  readonly #waiting = new Set<Waiting>();

  constructor(limits: PageRoomLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Settles with what gives the room back, to be called once. Throws 429 when there is none in time. */
  enter(tenant_id: string, bytes: number): Promise<() => void> {
    const { tenant_waiting_max, wait_ms } = this.#limits;
    if (this.#hasRoom(tenant_id, bytes)) return Promise.resolve(this.#take(tenant_id, bytes));
    const own = [...this.#waiting].filter((one) => one.tenant_id === tenant_id);
    if (own.length >= tenant_waiting_max) return Promise.reject(noRoom());
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        ...{ tenant_id, bytes },
        admit: () => {
          clearTimeout(deadline);
          this.#waiting.delete(waiting);
          resolve(this.#take(tenant_id, bytes));
        },
      };
      const deadline = setTimeout(() => {
        this.#waiting.delete(waiting);
        reject(noRoom());
      }, wait_ms);
      this.#waiting.add(waiting);
    });
  }

  #hasRoom(tenant_id: string, bytes: number): boolean {
    const { tenant_bytes_max, bytes_max } = this.#limits;
    const own = this.#bytesOf.get(tenant_id) ?? 0;
    const fitsTenant = own === 0 || own + bytes <= tenant_bytes_max;
    return fitsTenant && (this.#bytes === 0 || this.#bytes + bytes <= bytes_max);
  }

  #take(tenant_id: string, bytes: number): () => void {
    this.#add(tenant_id, bytes);
    return () => {
      this.#add(tenant_id, -bytes);
      for (const one of this.#waiting) {
        if (this.#hasRoom(one.tenant_id, one.bytes)) one.admit();
      }
    };
  }

  #add(tenant_id: string, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#bytesOf.get(tenant_id) ?? 0) + bytes;
    if (own === 0) this.#bytesOf.delete(tenant_id);
    else this.#bytesOf.set(tenant_id, own);
  }
}

function noRoom(): ApiError {
  const detail = 'Too many large pages of the tenant are under way; ask for fewer tokens at once';
  return new ApiError('too_many_requests', detail, { headers: { 'retry-after': '1' } });
}
