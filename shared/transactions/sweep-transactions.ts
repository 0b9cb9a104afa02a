/**
 * Removes what transactions that nobody ended have left behind. Nothing waits for it: an open
 * transaction whose time is over is rolled back for everybody, swept or not.
 */
import { inTransaction, type Pool, type Queryable } from '../postgres/pool.ts';
import { ANY_TOKEN } from './transaction-store.ts';

/** Transactions looked at by one batch. */
const BATCH_TRANSACTIONS = 100;

const STAGED_TABLES = [
  { table: 'staged_tokens', rows: 'true' },
  { table: 'staged_cvcs', rows: 'true' },
  { table: 'token_locks', rows: ANY_TOKEN },
] as const;

/**
 * One batch; returns how many rows it has marked or removed. Finished ones stay known for a day. Each
 * transaction that has expired is told to `onExpired` once, when nothing of it is left.
 */
export async function sweepTransactions(
  pool: Pool,
  limit: number,
  onExpired: (count: number) => void = () => undefined,
): Promise<number> {
  const marked = await expireDue(pool, limit);
  const { removed, expired } = await clearExpired(pool, limit);
  if (expired > 0) onExpired(expired);
  return marked + removed + expired;
}

interface Cleared {
  /** Rows of what was staged. */
  readonly removed: number;
  /** Transactions of which nothing is left. */
  readonly expired: number;
}

/** From here on they have ended by everybody's clock. */
async function expireDue(db: Queryable, limit: number): Promise<number> {
  const { rowCount } = await db.query({
    name: 'expire-transactions',
    text: `
      UPDATE transactions SET state = 'expired', finished_at = clock_now()
      WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM transactions
        WHERE state IN ('open', 'expired') AND state = 'open' AND expires_at <= clock_now()
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))`,
    values: [limit],
  });
  return rowCount ?? 0;
}

/** Two sweepers never work on the same transaction. Those with nothing left are rolled back. */
function clearExpired(pool: Pool, limit: number): Promise<Cleared> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ tenant_id: string; id: string }>({
      name: 'claim-expired-transactions',
      text: `
        SELECT tenant_id, id FROM transactions
        WHERE state IN ('open', 'expired') AND state = 'expired'
        ORDER BY expires_at LIMIT ${BATCH_TRANSACTIONS} FOR UPDATE SKIP LOCKED`,
    });
    if (rows.length === 0) return { removed: 0, expired: 0 };
    const values = [rows.map((row) => row.tenant_id), rows.map((row) => row.id)];
    let removed = 0;
    let complete = true;
    for (const { table, rows: those } of STAGED_TABLES) {
      const { rowCount } = await client.query({
        name: `clear-expired-${table}`,
        text: `
          DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
            SELECT s.ctid FROM unnest($1::uuid[], $2::uuid[]) AS e (tenant_id, id)
            CROSS JOIN LATERAL (
              SELECT ctid FROM ${table} WHERE tenant_id = e.tenant_id AND transaction_id = e.id
                AND ${those} LIMIT $3
            ) s LIMIT $3))`,
        values: [...values, limit],
      });
      removed += rowCount ?? 0;
      if (rowCount === limit) complete = false;
    }
    if (!complete) return { removed, expired: 0 };
    await client.query({
      name: 'roll-back-expired',
      text: `
        UPDATE transactions SET state = 'rolled_back' WHERE ctid = ANY (ARRAY(
          SELECT t.ctid FROM unnest($1::uuid[], $2::uuid[]) AS e (tenant_id, id)
          CROSS JOIN LATERAL (
            SELECT ctid FROM transactions WHERE tenant_id = e.tenant_id AND id = e.id LIMIT 1
          ) t))`,
      values,
    });
    return { removed, expired: rows.length };
  });
}
