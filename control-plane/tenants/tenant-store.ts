/** Tenants in Postgres. A tenant's row is also its version and its lock: see config-changes. */
import type { Tenant } from '../../shared/api/tenants.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { omitNulls, type RowOf } from '../omit-nulls.ts';

const COLUMNS = 'id, owner_id, name, settings, created_by, created_at, modified_by, modified_at';

export async function insertTenant(
  client: Queryable,
  { id, name, config_version }: { id: string; name: string; config_version: string },
): Promise<Tenant> {
  const { rows } = await client.query<RowOf<Tenant>>(
    `INSERT INTO tenants (id, name, config_version, created_at)
     VALUES ($1, $2, $3, clock_now()) RETURNING ${COLUMNS}`,
    [id, name, config_version],
  );
  return omitNulls<Tenant>(rows[0] as RowOf<Tenant>);
}

export async function findTenant(db: Queryable, id: string): Promise<Tenant | undefined> {
  const { rows } = await db.query<RowOf<Tenant>>(`SELECT ${COLUMNS} FROM tenants WHERE id = $1`, [
    id,
  ]);
  return rows[0] && omitNulls<Tenant>(rows[0]);
}

/** All tenants, oldest first: for the command line, never for a caller of the API. */
export async function listTenants(db: Queryable): Promise<Tenant[]> {
  const { rows } = await db.query<RowOf<Tenant>>(
    `SELECT ${COLUMNS} FROM tenants ORDER BY created_at, id`,
  );
  return rows.map((row) => omitNulls<Tenant>(row));
}

/** `settings` replaces all of them; `undefined` keeps them. */
export async function updateTenant(
  client: Queryable,
  id: string,
  { name, settings }: { name: string; settings: Record<string, string> | undefined },
  modifiedBy: string,
): Promise<Tenant | undefined> {
  const { rows } = await client.query<RowOf<Tenant>>(
    `UPDATE tenants SET name = $2, settings = coalesce($3, settings),
       modified_by = $4, modified_at = clock_now()
     WHERE id = $1 RETURNING ${COLUMNS}`,
    [id, name, settings === undefined ? null : JSON.stringify(settings), modifiedBy],
  );
  return rows[0] && omitNulls<Tenant>(rows[0]);
}

/** Everything of a tenant that is small enough for one transaction. Its keys are among them. */
const DELETED_AT_ONCE = [
  'tenant_keys',
  'key_directory',
  'application_keys',
  'applications',
  'config_changes',
] as const;

/**
 * Deletes the tenant in the caller's transaction, which has locked its row: every key stops working
 * and every sealed value is shredded when it commits. The rows of its tokens, unreadable by then, are
 * left to `purgeDeletedTenants`.
 */
export async function deleteTenant(client: Queryable, id: string): Promise<void> {
  await client.query('DELETE FROM tenants WHERE id = $1', [id]);
  for (const table of DELETED_AT_ONCE) {
    await client.query(`DELETE FROM ${table} WHERE tenant_id = $1`, [id]);
  }
  await client.query(
    `INSERT INTO tenant_deletions (tenant_id, deleted_at) VALUES ($1, clock_now())`,
    [id],
  );
}
