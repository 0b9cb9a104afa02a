/**
 * Removes expired tokens with all that belongs to them. None was served any more, swept or not.
 */
import { insertAudit } from '../audit/write-audit.ts';
import { newTraceId } from '../http/trace-id.ts';
import { inTransaction, type Pool } from '../postgres/pool.ts';
import { DELETE_PARTS } from './token-store.ts';

interface ExpiredToken {
  tenant_id: string;
  id: string;
  container: string;
}

/**
 * Nobody knows how many rows a limit lets through when the statement is planned: a plan for a tenth of
 * the table walks all of it.
 */
const BY_INDEX = 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off';

/** Deletes up to `limit` expired tokens of any tenant, the oldest first; returns how many. */
export function sweepExpiredTokens(pool: Pool, limit: number): Promise<number> {
  return inTransaction(pool, async (client) => {
    await client.query(BY_INDEX);
    const { rows } = await client.query<ExpiredToken>({
      name: 'sweep-expired-tokens',
      text: `
        WITH due AS MATERIALIZED (
          SELECT tenant_id, id FROM tokens WHERE expires_at <= clock_now() AND id > ''
          ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ),
        deleted AS (
          DELETE FROM tokens t USING due d WHERE t.tenant_id = d.tenant_id AND t.id = d.id
          RETURNING t.tenant_id, t.id, t.container, t.type
        ), ${DELETE_PARTS}
        SELECT tenant_id, id, container FROM deleted`,
      values: [limit],
    });
    const trace_id = newTraceId();
    const entries = rows.map(({ tenant_id, id, container }) => ({
      ...({ tenant_id, actor_type: 'system', actor_id: null, operation: 'delete' } as const),
      ...({ entity_type: 'token', entity_id: id, container, denied: false, trace_id } as const),
    }));
    await insertAudit(client, entries);
    return rows.length;
  });
}
