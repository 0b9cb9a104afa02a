/** Everything that is swept or kept in order as time passes: one line per subject. */
import { Counter } from 'prom-client';
import type { Logger } from '../shared/observability/logger.ts';
import type { Metrics } from '../shared/observability/metrics.ts';
import type { Pool } from '../shared/postgres/pool.ts';
import { type DueRows, deleteDue } from '../shared/sweeps/delete-due.ts';
import { type ErasableTable, eraseDue } from '../shared/sweeps/erase-due.ts';
import { keepSweeping, type Sweep } from '../shared/sweeps/keep-sweeping.ts';
import { DELTAS_MAX, foldCounts } from '../shared/tokens/fold-counts.ts';
import { sweepExpiredTokens } from '../shared/tokens/sweep-tokens.ts';
import { sweepTransactions } from '../shared/transactions/sweep-transactions.ts';

export interface SweepOptions {
  readonly pool: Pool;
  readonly metrics: Pick<Metrics, 'registry'>;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Told how many transactions nobody has ended in time. */
  readonly onExpired: (count: number) => void;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/**
 * What is over once its time has come, and nothing else goes with it. Some state a condition that is
 * always true, which their index is for (migration 0008).
 */
const DUE_ROWS: readonly (DueRows & { every_ms: number })[] = [
  {
    table: 'token_cvcs',
    condition: "due_at <= clock_now() AND token_id > ''",
    every_ms: 5 * SECOND,
  },
  {
    table: 'idempotency_records',
    condition:
      "created_at <= clock_now() - interval '24 hours' " +
      "AND scope > '00000000-0000-0000-0000-000000000000'",
    every_ms: 10 * SECOND,
  },
  {
    table: 'jobs',
    condition: "finished_at <= clock_now() - interval '1 day'",
    every_ms: 10 * SECOND,
  },
  {
    table: 'reactor_results',
    condition: "created_at <= clock_now() - interval '24 hours' AND sealed > ''",
    every_ms: 10 * SECOND,
  },
  {
    // Who comes back to a finished one is told for so long that it has ended.
    table: 'transactions',
    condition: "finished_at <= clock_now() - interval '1 day' AND state <> 'expired'",
    every_ms: MINUTE,
  },
  { table: 'webhook_secrets', condition: 'retires_at <= clock_now()', every_ms: MINUTE },
  {
    // Who knows an older version reads everything anew (data-plane/config-cache/change-record.ts).
    table: 'config_changes',
    condition: "changed_at <= clock_now() - interval '1 day'",
    every_ms: MINUTE,
  },
];

/** Answers that are not kept for as long as their rows are. */
const ERASED: readonly ErasableTable[] = ['idempotency_records', 'reactor_results'];

/** All sweeps of the job process. */
export function sweepsOf(pool: Pool, onExpired?: SweepOptions['onExpired']): Sweep[] {
  return [
    {
      subject: 'expired_tokens',
      every_ms: SECOND,
      run: (limit) => sweepExpiredTokens(pool, limit),
    },
    {
      subject: 'ended_transactions',
      every_ms: SECOND,
      run: (limit) => sweepTransactions(pool, limit, onExpired),
    },
    {
      ...{ subject: 'count_deltas', every_ms: SECOND, batch_rows: DELTAS_MAX },
      run: (limit) => foldCounts(pool, limit),
    },
    ...ERASED.map((table) => ({
      ...{ subject: `due_${table}`, every_ms: 5 * SECOND },
      run: (limit: number) => eraseDue(pool, table, limit),
    })),
    ...DUE_ROWS.map(({ every_ms, ...due }) => ({
      ...{ subject: due.table, every_ms },
      run: (limit: number) => deleteDue(pool, due, limit),
    })),
  ];
}

/** Settles after the batch at hand once `signal` aborts. */
export function runSweeps(options: SweepOptions): Promise<void> {
  const { pool, metrics, log, signal, onExpired } = options;
  const rows = new Counter({
    name: 'sallyport_swept_rows_total',
    help: 'Rows removed or folded because their time had come',
    labelNames: ['subject'],
    registers: [metrics.registry],
  });
  const onRows = (subject: string, count: number): void => rows.inc({ subject }, count);
  return keepSweeping({ sweeps: sweepsOf(pool, onExpired), onRows, log, signal });
}
