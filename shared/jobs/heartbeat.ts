/**
 * Keeps the leases of a process: all of them extended by one statement every few seconds. A lease that
 * somebody else has by now, or that could not be extended in time, is lost, and its work is told.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../observability/logger.ts';
import type { Pool } from '../postgres/pool.ts';
import type { HeldLease } from './job-lease.ts';
import { extendLeases, LEASE_MS } from './job-store.ts';

const HEARTBEAT_MS = 5_000;
/** How often leases that ran out are looked for; also after this process was stopped for a while. */
const LOOK_MS = 1_000;

/** Beats until `signal` aborts. A beat that fails is tried again at the next look. */
export async function keepLeases(
  pool: Pool,
  leases: ReadonlySet<HeldLease>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  let beatAt = performance.now();
  while (!signal.aborted) {
    await delay(LOOK_MS, undefined, { signal }).catch(() => {});
    for (const lease of leases) if (lease.isOver(performance.now())) lease.lose();
    if (signal.aborted || performance.now() - beatAt < HEARTBEAT_MS) continue;
    const held = [...leases].filter(({ state }) => state === 'held');
    // From before the statement: the database counts from a later moment.
    const sentAt = performance.now();
    try {
      if (held.length > 0) await beat(pool, held, sentAt);
      beatAt = sentAt;
    } catch (error) {
      log.warn({ err: error, count: held.length }, 'the leases of jobs were not extended');
    }
  }
}

async function beat(pool: Pool, held: readonly HeldLease[], sentAt: number): Promise<void> {
  const extended = await extendLeases(
    pool,
    held.map(({ job }) => job),
  );
  for (const lease of held) {
    if (extended.has(lease.job.lease_id)) lease.extend(sentAt + LEASE_MS);
    else lease.lose();
  }
}
