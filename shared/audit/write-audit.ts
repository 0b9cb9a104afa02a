/**
 * How the audit trail is written: in the transaction of a change, or, for accesses that change nothing,
 * many of them in one statement. `batched` answers at once and is at most 100 ms behind; `strict`
 * answers when the row is committed.
 */
import type { AuditMetrics } from '../observability/audit-metrics.ts';
import type { Logger } from '../observability/logger.ts';
import { createBatcher } from '../postgres/batcher.ts';
import { isDatabaseUnavailable, isRowError } from '../postgres/database-error.ts';
import type { Pool, Queryable } from '../postgres/pool.ts';
import type { AuditEntry } from './audit-entry.ts';
import { AuditQueue } from './audit-queue.ts';
import { insertAuditRows } from './insert-audit-rows.ts';

/** `off` is for the benchmarks, which tell what the trail costs; no setting asks for it. */
export type AuditMode = 'batched' | 'strict' | 'off';

export interface AuditWriter {
  /**
   * Takes entries of what has been decided and is about to be answered. A promise is to be waited for
   * before the answer; it rejects when the entries could not be taken, and then there is no answer.
   */
  record(entries: readonly AuditEntry[]): undefined | Promise<void>;
  /** Settles when everything recorded so far is committed. */
  flush(): Promise<void>;
  /** Writes what is left, or gives up on a database that stays away. */
  close(): Promise<void>;
}

/** Writes the entries in the caller's transaction: they commit with what they tell of, or do not. */
export async function insertAudit(
  client: Queryable,
  entries: readonly AuditEntry[],
): Promise<void> {
  if (entries.length > 0) await insertAuditRows(client, entries, []);
}

export interface AuditWriterOptions {
  readonly pool: Pool;
  readonly mode: AuditMode;
  readonly metrics: AuditMetrics;
  readonly log: Logger;
}

export function createAuditWriter({ pool, mode, metrics, log }: AuditWriterOptions): AuditWriter {
  if (mode === 'batched') return new AuditQueue({ db: pool, metrics, log });
  if (mode === 'strict') return strictWriter(pool, metrics);
  return { record: () => undefined, flush: async () => undefined, close: async () => undefined };
}

/** Whoever records at the same time shares a statement, and so a commit. */
function strictWriter(db: Queryable, metrics: AuditMetrics): AuditWriter {
  const underWay = new Set<Promise<void>>();
  const batcher = createBatcher<AuditEntry, void>({
    run: async (entries) => {
      await insertAuditRows(db, entries, []);
      metrics.rows.inc(entries.length);
      return entries.map(() => undefined);
    },
    isolates: isRowError,
    isOutage: isDatabaseUnavailable,
  });
  const settled = async (): Promise<void> => void (await Promise.allSettled(underWay));
  return {
    async record(entries) {
      const committed = Promise.all(entries.map((entry) => batcher.submit(entry))).then(() => {});
      underWay.add(committed);
      await committed.finally(() => underWay.delete(committed));
    },
    flush: settled,
    close: settled,
  };
}
