/**
 * The key of a proxy: made once, shown again to whoever may read the proxy. So it is stored sealed;
 * requests find their proxy by its HMAC in the key directory.
 */
import { generateProxyKey, hashProxyKey } from '../../shared/api-keys.ts';
import type { DataKeys } from '../../shared/crypto/data-keys.ts';
import { seal, sealLabel } from '../../shared/crypto/envelope.ts';
import type { Installation } from '../../shared/crypto/installation.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';

const label = (tenantId: string, proxyId: string): Buffer =>
  sealLabel('proxy-key', tenantId, proxyId);

/** Gives a new proxy its key, in the caller's transaction; returns what its row is to hold. */
export async function issueProxyKey(
  client: Queryable,
  { installation, dataKeys }: { installation: Pick<Installation, 'pepper'>; dataKeys: DataKeys },
  tenantId: string,
  proxyId: string,
): Promise<Buffer> {
  const key = generateProxyKey();
  const { current } = await dataKeys.forTenant(tenantId);
  await client.query(
    `INSERT INTO key_directory (hash, tenant_id, kind, id) VALUES ($1, $2, 'proxy', $3)`,
    [hashProxyKey(key, installation.pepper), tenantId, proxyId],
  );
  return seal(current, Buffer.from(key), label(tenantId, proxyId));
}

/** The key in clear. */
export async function openProxyKey(
  dataKeys: DataKeys,
  tenantId: string,
  proxyId: string,
  sealed: Buffer,
): Promise<string> {
  return (await dataKeys.open(tenantId, sealed, label(tenantId, proxyId))).toString('utf8');
}

/** No request finds the proxy any more once the caller's transaction has committed. */
export async function revokeProxyKey(
  client: Queryable,
  tenantId: string,
  proxyId: string,
): Promise<void> {
  await client.query(
    `DELETE FROM key_directory WHERE tenant_id = $1 AND kind = 'proxy' AND id = $2`,
    [tenantId, proxyId],
  );
}
