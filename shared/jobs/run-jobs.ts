/**
 * Runs due jobs until told to stop: claims as many as there are free places, keeps their leases, and
 * lets each kind's work do the rest. A job that dies with its process is claimed by another when its
 * lease ends; nothing here needs to have been tidied up.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { listen } from '../postgres/listen.ts';
import { keepLeases } from './heartbeat.ts';
import type { HeldLease } from './job-lease.ts';
import { giveBack, JobQueue, type JobQueueOptions, type JobWork } from './job-queue.ts';
import { JOBS_CHANNEL, type JobKind } from './job-store.ts';

export type { JobLease } from './job-lease.ts';
export type { JobWork } from './job-queue.ts';

export interface RunJobsOptions extends JobQueueOptions {
  readonly works: Readonly<Record<JobKind, JobWork>>;
  /** The database past any pooler, to be woken at once; absent: it is asked each second. */
  readonly directUrl?: string;
  /** What jobs under way get to end by themselves. */
  readonly drain_ms?: number;
}

/** A reaction may take 30 s; the process ends before it is killed for not ending. */
const DRAIN_MS_DEFAULT = 24_000;
/** What works get to notice that they should end. */
const ABANDONED_MS = 1_000;

/** Settles when nothing runs any more and what did not end was given back. */
export async function runJobs(options: RunJobsOptions): Promise<void> {
  const { pool, log, signal, directUrl, works } = options;
  const leases = new Set<HeldLease>();
  const kinds = Object.keys(works) as JobKind[];
  const queues = kinds.map((kind) => new JobQueue(kind, works[kind], leases, options));
  const wakeAll = (): void => {
    for (const queue of queues) queue.noticed();
  };
  signal.addEventListener('abort', wakeAll, { once: true });
  const listener = directUrl && listen(directUrl, JOBS_CHANNEL, wakeAll, log);
  const beating = new AbortController();
  const kept = keepLeases(pool, leases, log, beating.signal);
  try {
    await Promise.all(queues.map((queue) => queue.keepClaiming()));
    const ended = Promise.all(queues.map((queue) => queue.ended()));
    await within(options.drain_ms ?? DRAIN_MS_DEFAULT, ended);
    for (const lease of leases) lease.abandon();
    await within(ABANDONED_MS, ended);
    await Promise.all([...leases].map((lease) => giveBack(pool, lease, 0)));
  } finally {
    beating.abort();
    await kept;
    if (listener) await listener.close();
  }
}

/** Settles with `work`, or without it when it takes longer. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const { signal } = timer;
  await Promise.race([work, delay(ms, undefined, { signal }).catch(() => {})]);
  timer.abort();
}
