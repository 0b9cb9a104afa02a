/**
 * The jobs of one kind in one process: claims as many as there are free places, runs each, and gives back
 * what did not end.
 */
import type { JobMetrics, JobOutcome } from '../observability/job-metrics.ts';
import type { Logger } from '../observability/logger.ts';
import type { Pool } from '../postgres/pool.ts';
import type { JobClaim } from './claim-jobs.ts';
import { HeldLease, type JobLease } from './job-lease.ts';
import {
  type ClaimedJob,
  type JobKind,
  LEASE_MS,
  NOTICE_EVERY_MS,
  releaseJob,
} from './job-store.ts';
import { TenantTurns } from './tenant-turns.ts';
import { WakeUp } from './wake-up.ts';

/** What is done for one kind of job. */
export interface JobWork {
  /** Jobs of the kind that one process runs at a time. */
  readonly concurrency: number;
  /**
   * Runs one job and ends it through its lease. A job that is `started` was interrupted: it is ended
   * without being begun again. What throws, or ends nothing, is tried again later.
   */
  run(job: ClaimedJob, lease: JobLease): Promise<void>;
}

export interface JobQueueOptions {
  readonly pool: Pool;
  readonly log: Logger;
  readonly metrics: JobMetrics;
  /** No job is claimed from its abort on. */
  readonly signal: AbortSignal;
}

/** The longest a due job waits when no notice came. */
const POLL_MS = 1_000;
/** After a notice more may follow unannounced for a moment. */
const POLL_AFTER_NOTICE_MS = 25;
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 300_000;

export class JobQueue {
  readonly #kind: JobKind;
  readonly #work: JobWork;
  readonly #leases: Set<HeldLease>;
  readonly #options: JobQueueOptions;
  readonly #turns: TenantTurns;
  readonly #running = new Set<Promise<void>>();
  readonly #wakeUp = new WakeUp();
  #noticedAt = Number.NEGATIVE_INFINITY;

  constructor(kind: JobKind, work: JobWork, leases: Set<HeldLease>, options: JobQueueOptions) {
    this.#kind = kind;
    this.#work = work;
    this.#leases = leases;
    this.#options = options;
    this.#turns = new TenantTurns(kind);
  }

  noticed(): void {
    this.#noticedAt = performance.now();
    this.#wakeUp.wake();
  }

  /** Settles when told to stop; what was claimed goes on. */
  async keepClaiming(): Promise<void> {
    const { signal, log } = this.#options;
    while (!signal.aborted) {
      const claimed = await this.#claim().catch((error: unknown) => {
        log.warn({ err: error, resource: this.#kind }, 'no jobs were claimed');
        return 0;
      });
      if (claimed > 0) continue;
      const isFresh = performance.now() - this.#noticedAt < 2 * NOTICE_EVERY_MS;
      await this.#wakeUp.wait(isFresh ? POLL_AFTER_NOTICE_MS : POLL_MS);
    }
  }

  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #claim(): Promise<number> {
    const free = this.#work.concurrency - this.#running.size;
    if (free === 0) return 0;
    // From before the statement: the database counts from a later moment.
    const heldUntil = performance.now() + LEASE_MS;
    const claims = await this.#turns.claim(this.#options.pool, free);
    for (const claim of claims) this.#start(claim, heldUntil);
    return claims.length;
  }

  #start({ delay_ms, ...job }: JobClaim, heldUntil: number): void {
    const { metrics, pool } = this.#options;
    const kind = this.#kind;
    const lease = new HeldLease(pool, job, heldUntil);
    this.#leases.add(lease);
    metrics.delay.observe({ kind }, delay_ms / 1000);
    metrics.inFlight.inc({ kind });
    const running = this.#run(lease).then((outcome) => {
      metrics.jobs.inc({ kind, outcome });
      metrics.inFlight.dec({ kind });
      this.#leases.delete(lease);
      this.#running.delete(running);
      this.#turns.release(job.tenant_id);
      this.#wakeUp.wake();
    });
    this.#running.add(running);
  }

  /** Never rejects. */
  async #run(lease: HeldLease): Promise<JobOutcome> {
    const { log, pool } = this.#options;
    const { job } = lease;
    const named = { resource: job.kind, tenant_id: job.tenant_id, attempt: job.attempt };
    try {
      await this.#work.run(job, lease);
      if (lease.state === 'held') throw new Error('the work did not end its job');
    } catch (error) {
      if (lease.state === 'held') {
        const isEnding = lease.signal.aborted;
        if (!isEnding) log.warn({ err: error, ...named }, 'a job failed; it is tried again');
        // What was begun is only to be ended: that can be done at once.
        await giveBack(pool, lease, isEnding || lease.begun ? 0 : retryDelay(job.attempt));
        return isEnding ? 'released' : 'failed';
      }
      log.debug({ err: error, ...named }, 'a job failed whose lease had ended');
    }
    return lease.state === 'lost' ? 'lost' : 'done';
  }
}

function retryDelay(attempt: number): number {
  const backoff = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(attempt - 1, 20));
  return Math.round(backoff * (0.5 + Math.random() / 2));
}

/** A database that is away is no reason to fail: the lease ends by itself. */
export async function giveBack(pool: Pool, lease: HeldLease, delay_ms: number): Promise<void> {
  if (lease.state !== 'held') return;
  await releaseJob(pool, lease.job, delay_ms, delay_ms > 0).catch(() => undefined);
  lease.lose();
}
