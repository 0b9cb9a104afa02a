/**
 * How much of large answers a tenant may have kept for the idempotency keys of its reactions: code that
 * answers megabytes must not fill the disk of all. Counted by the process that keeps them, so each has
 * room of its own, and one that starts knows of none: a bound for floods, not a quota.
 */
import { LRUCache } from 'lru-cache';
import { ApiError } from '../../shared/errors.ts';

/** As much as results of asynchronous reactions may take (queue-room.ts). */
const BYTES_MAX = 4 * 1024 * 1024 * 1024;
/** Smaller ones take hardly more than what any other request with a key leaves, and are not counted. */
const LARGE_BYTES = 32 * 1024;
/** Answers of one hour are counted together, and are gone a day after its end. */
const HOUR_MS = 60 * 60 * 1_000;
const HOURS_KEPT = 24;
/** Tenants remembered; others have room anew. */
const TENANTS_MAX = 10_000;
const RETRY_AFTER_S = '60';
const DETAIL =
  'Too many large answers are kept for idempotency keys of the tenant already; each is kept for a day';

interface KeptInHour {
  readonly hour: number;
  bytes: number;
}

export class AnswerRoom {
  readonly #kept = new LRUCache<string, KeptInHour[]>({ max: TENANTS_MAX });
  readonly #bytesMax: number;
  readonly #now: () => number;

  /** `now`: in milliseconds, on a monotonic clock. */
  constructor(bytesMax = BYTES_MAX, now = () => performance.now()) {
    this.#bytesMax = bytesMax;
    this.#now = now;
  }

  /** Throws 429 when the tenant has enough. What runs already is not counted yet. */
  require(tenantId: string): void {
    const kept = this.#kept.get(tenantId);
    if (kept === undefined) return;
    const hour = this.#hour();
    const bytes = kept.reduce((sum, one) => sum + (isGone(one, hour) ? 0 : one.bytes), 0);
    if (bytes < this.#bytesMax) return;
    throw new ApiError('too_many_requests', DETAIL, { headers: { 'retry-after': RETRY_AFTER_S } });
  }

  /** An answer is kept from now on. */
  add(tenantId: string, bytes: number): void {
    if (bytes <= LARGE_BYTES) return;
    const hour = this.#hour();
    const kept = this.#kept.get(tenantId)?.filter((one) => !isGone(one, hour)) ?? [];
    const last = kept.at(-1);
    if (last?.hour === hour) last.bytes += bytes;
    else kept.push({ hour, bytes });
    this.#kept.set(tenantId, kept);
  }

  #hour(): number {
    return Math.floor(this.#now() / HOUR_MS);
  }
}

const isGone = ({ hour }: KeptInHour, now: number): boolean => now > hour + HOURS_KEPT;
