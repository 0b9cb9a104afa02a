/** Which tokens are still there, without reading what they hold. */
import type { Queryable } from '../postgres/pool.ts';
import { NOT_EXPIRED } from './token-row.ts';

/** Those of `ids` that the tenant has no longer, or that have expired by now. */
export async function findMissing(
  db: Queryable,
  tenantId: string,
  ids: readonly string[],
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'find-missing-tokens',
    text: `
      SELECT q.id FROM unnest($2::text[]) AS q (id)
      WHERE NOT EXISTS (
        SELECT FROM tokens t WHERE t.tenant_id = $1 AND t.id = q.id AND ${NOT_EXPIRED}
      )`,
    values: [tenantId, ids],
  });
  return rows.map(({ id }) => id);
}
