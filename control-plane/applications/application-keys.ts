/**
 * Issues and revokes the API keys of applications. A key is returned once, to whoever asked for it;
 * what is stored is its HMAC under the installation's pepper.
 */
import { randomUUID } from 'node:crypto';
import { generateApiKey, hashApiKey } from '../../shared/api-keys.ts';
import type { Installation } from '../../shared/crypto/installation.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';

export interface KeyIssue {
  /** The application that asked; `null` for the command line. */
  created_by: string | null;
  /** A well-formed key to use instead of a new random one: the bootstrap key. */
  key?: string | undefined;
}

/** Gives the application one more key, in the caller's transaction, and returns it. */
export async function issueKey(
  client: Queryable,
  { pepper }: Pick<Installation, 'pepper'>,
  tenantId: string,
  applicationId: string,
  { created_by, key = generateApiKey() }: KeyIssue,
): Promise<string> {
  const hash = hashApiKey(key, pepper);
  await client.query(
    `INSERT INTO application_keys (tenant_id, application_id, id, hash, created_by, created_at)
     VALUES ($1, $2, $3, $4, $5, clock_now())`,
    [tenantId, applicationId, randomUUID(), hash, created_by],
  );
  await client.query(
    `INSERT INTO key_directory (hash, tenant_id, kind, id) VALUES ($1, $2, 'application', $3)`,
    [hash, tenantId, applicationId],
  );
  return key;
}

/** Revokes all keys of the application, in the caller's transaction, which has locked its row. */
export async function revokeKeys(
  client: Queryable,
  tenantId: string,
  applicationId: string,
): Promise<void> {
  await client.query(
    `DELETE FROM key_directory WHERE tenant_id = $1 AND kind = 'application' AND id = $2`,
    [tenantId, applicationId],
  );
  await client.query('DELETE FROM application_keys WHERE tenant_id = $1 AND application_id = $2', [
    tenantId,
    applicationId,
  ]);
}
