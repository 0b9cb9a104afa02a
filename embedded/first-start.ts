/**
 * What a new database gets on the first start: one tenant and one application that manages it. Its key
 * leaves this module once, when it was generated here, and is stored nowhere.
 */
import { createManagementApplication } from '../control-plane/applications/create-application.ts';
import { auditSystemChange } from '../control-plane/audit-change.ts';
import { recordChange } from '../control-plane/config-changes/record-change.ts';
import { createTenant } from '../control-plane/tenants/create-tenant.ts';
import { listTenants } from '../control-plane/tenants/tenant-store.ts';
import type { Application } from '../shared/api/applications.ts';
import type { Tenant } from '../shared/api/tenants.ts';
import { hashApiKey } from '../shared/api-keys.ts';
import type { Installation } from '../shared/crypto/installation.ts';
import { newTraceId } from '../shared/http/trace-id.ts';
import { ADVISORY_LOCKS } from '../shared/postgres/advisory-locks.ts';
import { inTransaction, type Pool, type Queryable } from '../shared/postgres/pool.ts';

export interface FirstTenant {
  /** `undefined` when the operator chose the key. */
  readonly managementKey: string | undefined;
}

/**
 * Makes tenant and key when the database has no tenant at all; otherwise answers `undefined` and does
 * nothing. Of several machines that start at once, one makes them.
 */
export async function createFirstTenant(
  pool: Pool,
  installation: Installation,
  bootstrapKey: string | undefined,
): Promise<FirstTenant | undefined> {
  return inTransaction(pool, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.first_start]);
    if ((await listTenants(client)).length > 0) return undefined;
    const name = 'First tenant';
    const { key } = await createManagedTenant(client, installation, { name, key: bootstrapKey });
    return { managementKey: bootstrapKey === undefined ? key : undefined };
  });
}

/** Whether the key opens anything: it is some application's, of whatever tenant. */
export async function isKnownKey(
  db: Queryable,
  installation: Installation,
  key: string,
): Promise<boolean> {
  const hash = hashApiKey(key, installation.pepper);
  return (await db.query('SELECT 1 FROM key_directory WHERE hash = $1', [hash])).rowCount !== 0;
}

export interface ManagedTenant {
  readonly tenant: Tenant;
  readonly application: Application;
  /** In clear, to be shown once. */
  readonly key: string;
}

/**
 * A tenant with the application that manages it, in the caller's transaction. `key`: a well-formed key
 * to use instead of a new one. Throws 400 for a bad name.
 */
export async function createManagedTenant(
  client: Queryable,
  installation: Installation,
  { name, key }: { name: string; key?: string | undefined },
): Promise<ManagedTenant> {
  const tenant = await createTenant(client, installation, { name });
  const entity = { tenant_id: tenant.id, entity_type: 'tenant', entity_id: tenant.id } as const;
  await auditSystemChange(client, { ...entity, trace_id: newTraceId() });
  return { tenant, ...(await issueManagementKey(client, installation, tenant.id, key)) };
}

/** One more management application for a tenant: also the way back when its key was lost. */
export async function issueManagementKey(
  client: Queryable,
  installation: Installation,
  tenantId: string,
  key?: string | undefined,
): Promise<Omit<ManagedTenant, 'tenant'>> {
  const request = { name: 'Management', key };
  const made = await createManagementApplication(client, installation, tenantId, request);
  const { id } = made.application;
  await recordChange(client, tenantId, [{ kind: 'application', id }]);
  const entity = { tenant_id: tenantId, entity_type: 'application', entity_id: id } as const;
  await auditSystemChange(client, { ...entity, trace_id: newTraceId() });
  return made;
}
