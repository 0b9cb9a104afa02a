/**
 * Duplicates of many new tokens at once, inside one transaction: one statement locks their
 * fingerprints, a later one looks them up, as for a single token.
 */
import type { Queryable } from '../postgres/pool.ts';
import { NO_CVC_COLUMNS, NOT_EXPIRED, TOKEN_COLUMNS, type TokenRow } from './token-row.ts';

/**
 * Locks in the order of the lock numbers, so that two requests with the same fingerprints never wait
 * for each other. `DISTINCT` keeps the sort below the call. Same numbers as `lockFingerprint`.
 */
const LOCK_FINGERPRINTS = {
  name: 'lock-fingerprints',
  text: `
    SELECT pg_advisory_xact_lock(locks.number) FROM (
      SELECT DISTINCT hashtextextended($1::text || '/' || f.fingerprint, 0) AS number
      FROM unnest($2::text[]) AS f (fingerprint) ORDER BY 1
    ) locks`,
};

const FIND_BY_FINGERPRINTS = {
  name: 'find-tokens-by-fingerprints',
  text: `
    SELECT r.* FROM unnest($2::text[]) AS f (fingerprint)
    CROSS JOIN LATERAL (
      SELECT ${TOKEN_COLUMNS}, ${NO_CVC_COLUMNS} FROM tokens t
      WHERE t.tenant_id = $1 AND t.fingerprint = f.fingerprint AND ${NOT_EXPIRED}
      ORDER BY t.created_at, t.id LIMIT 1
    ) r`,
};

/** Makes other writers of these fingerprints wait until the transaction ends. */
export async function lockFingerprints(
  client: Queryable,
  tenantId: string,
  fingerprints: ReadonlySet<string>,
): Promise<void> {
  await client.query({ ...LOCK_FINGERPRINTS, values: [tenantId, [...fingerprints]] });
}

/**
 * The oldest live token of each fingerprint that has one. Other writers of these fingerprints wait
 * until the transaction ends.
 */
export async function findDuplicates(
  client: Queryable,
  tenantId: string,
  fingerprints: ReadonlySet<string>,
): Promise<Map<string, TokenRow>> {
  const found = new Map<string, TokenRow>();
  if (fingerprints.size === 0) return found;
  await lockFingerprints(client, tenantId, fingerprints);
  const { rows } = await client.query<TokenRow>({
    ...FIND_BY_FINGERPRINTS,
    values: [tenantId, [...fingerprints]],
  });
  for (const row of rows) if (row.fingerprint !== null) found.set(row.fingerprint, row);
  return found;
}
