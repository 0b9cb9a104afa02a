/**
 * Folds the count deltas that writes append into one row per tenant, container and type, so that a
 * list's total stays cheap. Totals are right at any moment, folded or not; one process folds at a time.
 */
import { ADVISORY_LOCKS } from '../postgres/advisory-locks.ts';
import type { Queryable } from '../postgres/pool.ts';

/** Deltas of one statement: some 20 ms of work, well below the statement timeout. */
export const DELTAS_MAX = 2_000;

/** Folds up to `limit` deltas; returns how many. 0 also when another process is at it. */
export async function foldCounts(db: Queryable, limit = DELTAS_MAX): Promise<number> {
  const { rows } = await db.query<{ folded: number }>({
    name: 'fold-token-counts',
    text: `
      WITH mine AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($1) AS yes),
      folded AS (
        DELETE FROM token_count_deltas WHERE (tenant_id, id) IN (
          SELECT d.tenant_id, d.id FROM token_count_deltas d, mine WHERE mine.yes LIMIT $2
        ) RETURNING tenant_id, container, type, delta
      ),
      sums AS (
        INSERT INTO token_counts (tenant_id, container, type, count)
        SELECT tenant_id, container, type, sum(delta) FROM folded GROUP BY 1, 2, 3
        ON CONFLICT (tenant_id, container, type)
          DO UPDATE SET count = token_counts.count + excluded.count
      )
      SELECT count(*)::int4 AS folded FROM folded`,
    values: [ADVISORY_LOCKS.fold_token_counts, limit],
  });
  return rows[0]?.folded ?? 0;
}
