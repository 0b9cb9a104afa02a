/**
 * Rows that stay when what they hold is due: they still say that something was done, which must not be
 * done again. What is due is shown to nobody, erased or not.
 */
import type { Queryable } from '../postgres/pool.ts';

export type ErasableTable = 'idempotency_records' | 'reactor_results';

/** Instead of what was sealed: shorter than any seal. */
const ERASED = "'\\x00'::bytea";

/** Whether what a row of such a table holds is not to be shown any more. */
export const IS_OVER = `(due_at <= clock_now() OR sealed = ${ERASED}) IS TRUE`;

/** Erases what is due, a few at a time; returns how many rows it was. */
export async function eraseDue(
  db: Queryable,
  table: ErasableTable,
  limit: number,
): Promise<number> {
  const { rowCount } = await db.query({
    name: `erase-${table}`,
    text: `
      UPDATE ${table} SET sealed = ${ERASED}, due_at = NULL WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE due_at <= clock_now() LIMIT $1 FOR UPDATE SKIP LOCKED))`,
    values: [limit],
  });
  return rowCount ?? 0;
}
