/** What keeps the audit trail in order as time passes: checkpoints, and months made and dropped. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../observability/logger.ts';
import { isDatabaseUnavailable } from '../postgres/database-error.ts';
import { readHead } from './checkpoint-store.ts';
import { dropMonthsBefore, ensurePartitions } from './partitions.ts';
import { type CheckpointOptions, writeCheckpoint } from './write-checkpoint.ts';

const CHECKPOINT_EVERY_MS = 60_000;
/** Not in the middle of what a first start has to say. */
const FIRST_AFTER_MS = 10_000;
const MONTHS_EVERY_MS = 60 * 60_000;

export interface KeepAuditOptions extends CheckpointOptions {
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Settles after the work at hand once `signal` aborts; what fails is tried again. Months and checkpoints
 * do not wait for each other: one that cannot be dropped, because it is being read, holds up no other.
 */
export async function keepAudit(options: KeepAuditOptions): Promise<void> {
  const { signal } = options;
  let monthsDueAt = 0;
  let pause_ms = FIRST_AFTER_MS;
  while (!signal.aborted) {
    if (performance.now() >= monthsDueAt && (await isDone(options, keepMonths))) {
      monthsDueAt = performance.now() + MONTHS_EVERY_MS;
    }
    await delay(pause_ms, undefined, { signal }).catch(() => undefined);
    pause_ms = CHECKPOINT_EVERY_MS;
    if (!signal.aborted) await isDone(options, writeCheckpoints);
  }
}

async function isDone(
  options: KeepAuditOptions,
  work: (options: KeepAuditOptions) => Promise<void>,
): Promise<boolean> {
  try {
    await work(options);
    return true;
  } catch (error) {
    const level = isDatabaseUnavailable(error) ? 'warn' : 'error';
    const text = 'the audit trail could not be kept in order; it is tried again';
    options.log[level]({ err: error }, text);
    return false;
  }
}

/** Until they have caught up. A log line says what no later change of the database can take back. */
export async function writeCheckpoints(options: KeepAuditOptions): Promise<void> {
  const { log, signal } = options;
  while (!signal.aborted) {
    const checkpoint = await writeCheckpoint(options);
    if (checkpoint === undefined) return;
    const { number, row_count, digest } = checkpoint;
    log.info({ number, count: row_count, digest }, 'audit checkpoint');
  }
}

/** Makes the months to come, and drops those that a checkpoint has given up. */
export async function keepMonths({ pool, log }: KeepAuditOptions): Promise<void> {
  const missing = await ensurePartitions(pool);
  if (missing.length > 0) {
    log.warn({ count: missing.length }, 'months of the audit trail have no partition of their own');
  }
  const head = await readHead(pool);
  if (head === undefined) return;
  const dropped = await dropMonthsBefore(pool, head.kept_from);
  if (dropped.length > 0) log.info({ count: dropped.length }, 'months of the audit trail dropped');
}
