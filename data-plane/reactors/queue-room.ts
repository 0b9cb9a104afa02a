/**
 * How many asynchronous reactions of a tenant may wait: they are stored, and a flood of one tenant must
 * not fill the disk of all. Looked at now and then, not counted for each call, so somewhat more may wait.
 */
import { LRUCache } from 'lru-cache';
import { ApiError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';

export interface QueueLimits {
  readonly jobs_max: number;
  readonly bytes_max: number;
}

const LIMITS: QueueLimits = { jobs_max: 100_000, bytes_max: 1024 * 1024 * 1024 };
/** Tenants remembered; others are looked at anew. */
const TENANTS_MAX = 10_000;
/** Between two looks; a second more for each ten thousand that have to be counted. */
const LOOK_EVERY_MS = 1_000;
const COUNTED_PER_MS = 10;
const RETRY_AFTER_S = '10';

interface Seen {
  readonly isFull: boolean;
  /** On the monotonic clock. */
  readonly lookAt: number;
}

export class QueueRoom {
  readonly #db: Queryable;
  readonly #limits: QueueLimits;
  readonly #seen = new LRUCache<string, Seen>({ max: TENANTS_MAX });
  readonly #looking = new Map<string, Promise<Seen>>();

  constructor(db: Queryable, limits: QueueLimits = LIMITS) {
    this.#db = db;
    this.#limits = limits;
  }

  /** Throws 429 when enough of the tenant's reactions wait already. */
  async require(tenantId: string): Promise<void> {
    const seen = this.#seen.get(tenantId);
    const isRecent = seen !== undefined && seen.lookAt > performance.now();
    const { isFull } = isRecent ? seen : await this.#look(tenantId);
    if (!isFull) return;
    throw new ApiError('too_many_requests', 'Too many reactions of the tenant wait already', {
      headers: { 'retry-after': RETRY_AFTER_S },
    });
  }

  /** One look at a time; those who come meanwhile wait for it. */
  #look(tenantId: string): Promise<Seen> {
    let looking = this.#looking.get(tenantId);
    if (looking === undefined) {
      looking = this.#count(tenantId).finally(() => this.#looking.delete(tenantId));
      this.#looking.set(tenantId, looking);
    }
    return looking;
  }

  async #count(tenantId: string): Promise<Seen> {
    const { jobs_max, bytes_max } = this.#limits;
    const { rows } = await this.#db.query<{ jobs: number; bytes: number }>({
      name: 'waiting-reactions',
      text: `
        SELECT count(*)::float8 AS jobs, coalesce(sum(octet_length(sealed)), 0)::float8 AS bytes
        FROM (
          SELECT sealed FROM jobs
          WHERE kind = 'react' AND tenant_id = $1 AND finished_at IS NULL LIMIT $2::int8
        ) j`,
      values: [tenantId, jobs_max],
    });
    const { jobs = 0, bytes = 0 } = rows[0] ?? {};
    const lookAt = performance.now() + LOOK_EVERY_MS + jobs / COUNTED_PER_MS;
    const seen = { isFull: jobs >= jobs_max || bytes >= bytes_max, lookAt };
    this.#seen.set(tenantId, seen);
    return seen;
  }
}
