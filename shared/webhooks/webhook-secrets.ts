/**
 * The secrets by which a tenant's receivers know our requests, sealed in Postgres: the one that was made
 * last, and for a day those that it replaced.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import type { DataKeys } from '../crypto/data-keys.ts';
import { seal, sealLabel } from '../crypto/envelope.ts';
import type { Queryable } from '../postgres/pool.ts';

/** How long a replaced secret signs along. */
export const RETIRING_HOURS = 24;
/** Signatures in one header: who replaces secrets faster than this loses the oldest early. */
export const SECRETS_MAX = 8;

const label = (tenantId: string, id: string): Buffer => sealLabel('webhook-secret', tenantId, id);

interface SecretRow {
  id: string;
  sealed: Buffer;
}

/**
 * Makes `secret` the tenant's, in the caller's transaction, which has locked the tenant's row: two that
 * replace it at the same time do it one after the other.
 */
export async function replaceWebhookSecret(
  client: Queryable,
  dataKeys: DataKeys,
  tenantId: string,
  { id, secret }: { id: string; secret: Buffer },
): Promise<void> {
  const { current } = await dataKeys.forTenant(tenantId);
  await client.query(
    `UPDATE webhook_secrets SET retires_at = clock_now() + make_interval(hours => ${RETIRING_HOURS})
     WHERE tenant_id = $1 AND retires_at IS NULL`,
    [tenantId],
  );
  await client.query(
    `DELETE FROM webhook_secrets WHERE tenant_id = $1 AND (retires_at <= clock_now() OR id IN (
       SELECT id FROM webhook_secrets WHERE tenant_id = $1
       ORDER BY created_at DESC, id OFFSET ${SECRETS_MAX - 1}))`,
    [tenantId],
  );
  await client.query('INSERT INTO webhook_secrets (tenant_id, id, sealed) VALUES ($1, $2, $3)', [
    tenantId,
    id,
    seal(current, secret, label(tenantId, id)),
  ]);
}

/** The secrets that sign now, the newest first; none when the tenant has not made any. */
export async function readWebhookSecrets(
  db: Queryable,
  dataKeys: DataKeys,
  tenantId: string,
): Promise<KeyObject[]> {
  const { rows } = await db.query<SecretRow>({
    name: 'webhook-secrets',
    text: `
      SELECT id, sealed FROM webhook_secrets
      WHERE tenant_id = $1 AND (retires_at IS NULL OR retires_at > clock_now())
      ORDER BY created_at DESC, id LIMIT ${SECRETS_MAX}`,
    values: [tenantId],
  });
  const opened = rows.map(({ id, sealed }) => dataKeys.open(tenantId, sealed, label(tenantId, id)));
  return (await Promise.all(opened)).map((secret) => createSecretKey(secret));
}
