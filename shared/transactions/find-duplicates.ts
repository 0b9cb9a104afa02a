/**
 * Duplicates as a transaction sees them (facts 8): of tokens that are live and that it leaves alone,
 * and of those it has staged. Never of what another open transaction has staged.
 */
import type { Queryable } from '../postgres/pool.ts';
import { lockFingerprints } from '../tokens/find-duplicates.ts';
import { NO_CVC_COLUMNS, NOT_EXPIRED, TOKEN_COLUMNS, type TokenRow } from '../tokens/token-row.ts';
import type { TransactionKey } from './transaction-store.ts';

const FIND_VISIBLE = {
  name: 'find-visible-by-fingerprints',
  text: `
    SELECT r.* FROM unnest($3::text[]) AS f (fingerprint)
    CROSS JOIN LATERAL (
      SELECT * FROM (
        SELECT ${TOKEN_COLUMNS}, ${NO_CVC_COLUMNS} FROM tokens t
        WHERE t.tenant_id = $1 AND t.fingerprint = f.fingerprint AND ${NOT_EXPIRED}
          AND ($4::text IS NULL OR t.id <> $4) AND NOT EXISTS (
            SELECT 1 FROM staged_tokens s
            WHERE s.tenant_id = $1 AND s.transaction_id = $2 AND s.id = t.id)
        UNION ALL
        SELECT ${TOKEN_COLUMNS}, ${NO_CVC_COLUMNS} FROM staged_tokens t
        WHERE t.tenant_id = $1 AND t.transaction_id = $2 AND t.fingerprint = f.fingerprint
          AND t.operation <> 'delete' AND ${NOT_EXPIRED} AND ($4::text IS NULL OR t.id <> $4)
      ) visible
      ORDER BY created_at_ms, id LIMIT 1
    ) r`,
};

/** The oldest token of each fingerprint that has one, other than `exceptId`. */
export async function findVisibleDuplicates(
  client: Queryable,
  { tenant_id, id }: Pick<TransactionKey, 'tenant_id' | 'id'>,
  fingerprints: ReadonlySet<string>,
  exceptId?: string,
): Promise<Map<string, TokenRow>> {
  const found = new Map<string, TokenRow>();
  if (fingerprints.size === 0) return found;
  await lockFingerprints(client, tenant_id, fingerprints);
  const { rows } = await client.query<TokenRow>({
    ...FIND_VISIBLE,
    values: [tenant_id, id, [...fingerprints], exceptId ?? null],
  });
  for (const row of rows) if (row.fingerprint !== null) found.set(row.fingerprint, row);
  return found;
}
