/**
 * How much of asynchronous reactions a tenant may have stored: calls and callbacks that wait, and results.
 * A flood of one tenant must not fill the disk of all. Looked at now and then, not counted for each call,
 * so somewhat more may be stored.
 */
import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ApiError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';

export interface QueueLimits {
  readonly jobs_max: number;
  readonly bytes_max: number;
  readonly results_max: number;
  readonly result_bytes_max: number;
}

const GIB = 1024 * 1024 * 1024;
const LIMITS: QueueLimits = {
  ...{ jobs_max: 100_000, bytes_max: GIB },
  ...{ results_max: 1_000_000, result_bytes_max: 4 * GIB },
};
/** So many results are counted; where there are more, some stand for the others. */
const RESULTS_COUNTED = 1_000;
/** Places among all possible ids where some are looked at, and how many behind each. */
const PLACES = 250;
const RESULTS_PER_PLACE = 4;
/** Tenants remembered; others are looked at anew. */
const TENANTS_MAX = 10_000;
/** Between two looks; a second more for each ten thousand that have to be counted. */
const LOOK_EVERY_MS = 1_000;
const COUNTED_PER_MS = 10;
const RETRY_AFTER_S = '10';

/** Why nothing more is accepted. */
type Fullness = 'waiting' | 'results';

const DETAILS: Record<Fullness, string> = {
  waiting: 'Too many reactions or callbacks of the tenant wait already',
  results: 'Too many results of the tenant are kept already; each is kept for a day',
};

interface Seen {
  readonly full: Fullness | undefined;
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

  /** Throws 429 when enough of the tenant's is stored already. */
  async require(tenantId: string): Promise<void> {
    refuse((await this.#recent(tenantId)).full);
  }

  /** The same for a reaction that has waited: there must be room for what it comes to. */
  async requireForResult(tenantId: string): Promise<void> {
    const { full } = await this.#recent(tenantId);
    if (full === 'results') refuse(full);
  }

  #recent(tenantId: string): Seen | Promise<Seen> {
    const seen = this.#seen.get(tenantId);
    const isRecent = seen !== undefined && seen.lookAt > performance.now();
    return isRecent ? seen : this.#look(tenantId);
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
    const { jobs_max, bytes_max, results_max, result_bytes_max } = this.#limits;
    const [waiting, results] = await Promise.all([
      countWaiting(this.#db, tenantId, jobs_max),
      estimateResults(this.#db, tenantId),
    ]);
    const lookAt = performance.now() + LOOK_EVERY_MS + waiting.rows / COUNTED_PER_MS;
    let full: Fullness | undefined;
    if (results.rows >= results_max || results.bytes >= result_bytes_max) full = 'results';
    else if (waiting.rows >= jobs_max || waiting.bytes >= bytes_max) full = 'waiting';
    const seen = { full, lookAt };
    this.#seen.set(tenantId, seen);
    return seen;
  }
}

function refuse(full: Fullness | undefined): void {
  if (full === undefined) return;
  throw new ApiError('too_many_requests', DETAILS[full], {
    headers: { 'retry-after': RETRY_AFTER_S },
  });
}

interface Stored {
  readonly rows: number;
  readonly bytes: number;
}

async function countWaiting(db: Queryable, tenantId: string, rows_max: number): Promise<Stored> {
  const { rows } = await db.query<Stored>({
    name: 'waiting-reactions',
    text: `
      SELECT count(*)::float8 AS rows, coalesce(sum(octet_length(sealed)), 0)::float8 AS bytes
      FROM (
        SELECT sealed FROM jobs
        WHERE kind IN ('react', 'callback') AND tenant_id = $1 AND finished_at IS NULL
        LIMIT $2::int8
      ) j`,
    values: [tenantId, rows_max],
  });
  return rows[0] ?? { rows: 0, bytes: 0 };
}

/** There may be a million, which nobody counts each second. */
async function estimateResults(db: Queryable, tenantId: string): Promise<Stored> {
  const { rows } = await db.query<Stored>({
    name: 'kept-results',
    text: `
      SELECT count(*)::float8 AS rows, coalesce(sum(octet_length(sealed)), 0)::float8 AS bytes
      FROM (
        SELECT sealed FROM reactor_results WHERE tenant_id = $1
        ORDER BY id LIMIT ${RESULTS_COUNTED}
      ) r`,
    values: [tenantId],
  });
  const [counted = { rows: 0, bytes: 0 }] = rows;
  return counted.rows < RESULTS_COUNTED ? counted : sampleResults(db, tenantId);
}

interface Sample extends Stored {
  readonly place: string;
  readonly last: string | null;
}

/**
 * Their ids are random: as far as those behind some places reach into all possible ids, so large is
 * their share. A script knows its id and may choose by it how much it returns, so the places are others
 * each time; and of several behind each, or one that follows close on another would hardly be found.
 */
async function sampleResults(db: Queryable, tenantId: string): Promise<Stored> {
  const places = Array.from({ length: PLACES }, () => randomUUID());
  const { rows: samples } = await db.query<Sample>({
    name: 'sample-kept-results',
    text: `
      SELECT p.place, count(r.id)::float8 AS rows,
        coalesce(sum(octet_length(r.sealed)), 0)::float8 AS bytes,
        max(r.id::text COLLATE "C") AS last
      FROM unnest($2::uuid[]) AS p (place)
      LEFT JOIN LATERAL (
        SELECT id, sealed FROM reactor_results WHERE tenant_id = $1 AND id >= p.place
        ORDER BY id LIMIT ${RESULTS_PER_PLACE}
      ) r ON true
      GROUP BY p.place`,
    values: [tenantId, places],
  });
  const sum = { rows: 0, bytes: 0, share: 0 };
  for (const { place, rows, bytes, last } of samples) {
    sum.rows += rows;
    sum.bytes += bytes;
    // Where fewer are found, there is none up to the end of all ids.
    const end = last === null || rows < RESULTS_PER_PLACE ? 1 : positionOf(last);
    sum.share += end - positionOf(place);
  }
  return { rows: sum.rows / sum.share, bytes: sum.bytes / sum.share };
}

/** Where among all possible ids one is: 0 to 1. */
const positionOf = (id: string): number => Number.parseInt(id.slice(0, 8), 16) / 2 ** 32;
