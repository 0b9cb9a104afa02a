/**
 * After a restore into a cluster whose transaction ids are lower, new rows would stand before rows that
 * are covered by checkpoints already. The base of positions is raised then, so that the trail goes on
 * behind its end; what was written in between is moved there too.
 */
import type { PoolClient, Queryable } from '../postgres/pool.ts';
import { withPatience } from '../postgres/silence.ts';
import type { StoredCheckpoint } from './checkpoint-store.ts';

/** Writers wait meanwhile; it happens once after a restore, and a whole month is looked through. */
const STATEMENT_TIMEOUT_MS = 30_000;
/** In the transaction of the next checkpoint. `head`: the newest checkpoint there is. */
export async function restoreOrder(client: PoolClient, head: StoredCheckpoint): Promise<void> {
  if ((await readNext(client)) >= head.to_position) return;
  // The client's own limit is that of usual statements.
  await withPatience(client, STATEMENT_TIMEOUT_MS, () => raiseBase(client, head));
}

async function raiseBase(client: PoolClient, head: StoredCheckpoint): Promise<void> {
  await client.query(`SET LOCAL statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
  // Waits for all who have written with the old base, and lets nobody begin.
  await client.query('LOCK TABLE audit_log IN SHARE ROW EXCLUSIVE MODE');
  await client.query({
    text: `
      UPDATE audit_positions SET base = greatest($1::int8, (SELECT max(position) + 1 FROM audit_log))
        - pg_current_xact_id()::text::int8
      WHERE id = 1`,
    values: [String(head.to_position)],
  });
  // No checkpoint covers a row that is younger than itself.
  await client.query({
    text: `
      UPDATE audit_log SET position = p.base + pg_current_xact_id()::text::int8
      FROM audit_positions p
      WHERE p.id = 1 AND position < $1 AND created_at > $2::timestamptz`,
    values: [String(head.to_position), head.created_at],
  });
}

/** The position of a transaction that would begin now. */
async function readNext(db: Queryable): Promise<bigint> {
  const { rows } = await db.query<{ next: string }>(
    `SELECT base + pg_snapshot_xmax(pg_current_snapshot())::text::int8 AS next
     FROM audit_positions WHERE id = 1`,
  );
  return BigInt(rows[0]?.next ?? 0);
}
