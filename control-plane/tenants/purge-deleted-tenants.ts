/**
 * Removes what is left of deleted tenants: rows that nobody can read any more, since their keys are
 * gone. In small batches, by one node at a time; what a crash interrupts goes on at the next pass.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/observability/logger.ts';
import { ADVISORY_LOCKS } from '../../shared/postgres/advisory-locks.ts';
import { inTransaction, type Pool } from '../../shared/postgres/pool.ts';

const TABLES = [
  'tokens',
  'token_terms',
  'token_cvcs',
  'token_counts',
  'token_count_deltas',
  'transactions',
  'staged_tokens',
  'staged_cvcs',
  'token_locks',
  'reactors',
  'reactor_formulas',
  'proxies',
  'idempotency_records',
  'jobs',
  'reactor_results',
  'webhook_secrets',
] as const;

/** Rows per statement at first and at most: a result of 5 MiB takes a hundred times as long as a token. */
const BATCH_ROWS_FIRST = 50;
const BATCH_ROWS_MAX = 1_000;
/** A batch that takes longer is followed by a smaller one: far below the statement limit of 2 s. */
const BATCH_MS_MAX = 200;
/** One that takes less, by a larger one. */
const BATCH_MS_GOOD = 80;
/** A write that was in flight at the deletion may still land; none lives this long. */
const SETTLED_SECONDS = 10;
const PASS_EVERY_MS = 5_000;

/**
 * One pass over all deleted tenants; returns the number of rows it removed. A tenant is done when a
 * pass finds nothing of it and its deletion is old enough for no write to be in flight.
 */
export async function purgeDeletedTenants(pool: Pool, signal?: AbortSignal): Promise<number> {
  const { rows } = await pool.query<{ tenant_id: string }>(
    'SELECT tenant_id FROM tenant_deletions ORDER BY deleted_at',
  );
  let removed = 0;
  for (const { tenant_id } of rows) {
    const ofTenant = await purgeTenant(pool, tenant_id, signal);
    // Another node is at work.
    if (ofTenant === undefined) return removed;
    removed += ofTenant;
    if (ofTenant === 0) await forgetDeletion(pool, tenant_id);
    if (signal?.aborted) return removed;
  }
  return removed;
}

/** Rows removed; `undefined` when another node holds the lock. */
async function purgeTenant(
  pool: Pool,
  tenantId: string,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  let removed = 0;
  for (const table of TABLES) {
    let limit = BATCH_ROWS_FIRST;
    for (;;) {
      const began = performance.now();
      const batch = await purgeBatch(pool, table, tenantId, limit);
      if (batch === undefined) return undefined;
      removed += batch;
      if (batch < limit || signal?.aborted) break;
      limit = nextLimit(limit, performance.now() - began);
    }
  }
  return removed;
}

function nextLimit(limit: number, elapsed_ms: number): number {
  if (elapsed_ms > BATCH_MS_MAX) return Math.max(1, limit >> 1);
  return elapsed_ms < BATCH_MS_GOOD ? Math.min(BATCH_ROWS_MAX, limit * 2) : limit;
}

function purgeBatch(
  pool: Pool,
  table: string,
  tenantId: string,
  limit: number,
): Promise<number | undefined> {
  return inTransaction(pool, async (client) => {
    // Of the transaction, not of the session: it works through a pooler, and a crash frees it.
    const { rows } = await client.query<{ locked: boolean }>(
      'SELECT pg_try_advisory_xact_lock($1) AS locked',
      [ADVISORY_LOCKS.purge_deleted_tenants],
    );
    if (rows[0]?.locked !== true) return undefined;
    const deleted = await client.query(
      `DELETE FROM ${table} WHERE tenant_id = $1 AND ctid = ANY (ARRAY(
         SELECT ctid FROM ${table} WHERE tenant_id = $1 LIMIT $2))`,
      [tenantId, limit],
    );
    return deleted.rowCount ?? 0;
  });
}

async function forgetDeletion(pool: Pool, tenantId: string): Promise<void> {
  await pool.query(
    `DELETE FROM tenant_deletions WHERE tenant_id = $1
       AND deleted_at <= clock_now() - make_interval(secs => ${SETTLED_SECONDS})`,
    [tenantId],
  );
}

export interface Purge {
  /** Ends the loop after the batch at hand. */
  stop(): Promise<void>;
}

/** Purges until stopped. A pass that fails is tried again; it must not end the process. */
export function startPurge({ pool, log }: { pool: Pool; log: Logger }): Purge {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        const count = await purgeDeletedTenants(pool, signal);
        if (count > 0) log.info({ count }, 'rows of deleted tenants removed');
      } catch (error) {
        log.warn({ err: error }, 'rows of deleted tenants could not be removed');
      }
      await delay(PASS_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  const running = run();

  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}
