/** Deletes rows whose time is over, a few at a time, whosever they are. */
import type { Queryable } from '../postgres/pool.ts';

export interface DueRows {
  readonly table: string;
  /** In SQL, on an index of the table. */
  readonly condition: string;
}

/** Rows that another sweeper or a request holds are left for later; returns how many were deleted. */
export async function deleteDue(
  db: Queryable,
  { table, condition }: DueRows,
  limit: number,
): Promise<number> {
  const { rowCount } = await db.query({
    name: `sweep-${table}`,
    text: `
      DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE ${condition} LIMIT $1 FOR UPDATE SKIP LOCKED))`,
    values: [limit],
  });
  return rowCount ?? 0;
}
