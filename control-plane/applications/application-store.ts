/**
 * Applications in Postgres. Every statement names the tenant first; an application that has expired
 * is gone for all of them, by the database's clock, whether or not its row was removed yet.
 */
import type { AccessRule } from '../../shared/access/access-rules.ts';
import type { ApplicationType, Permission } from '../../shared/access/permissions.ts';
import type { Application } from '../../shared/api/applications.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { omitNulls, type RowOf } from '../omit-nulls.ts';

const COLUMNS = `id, tenant_id, name, type, permissions, rules, expires_at,
  created_by, created_at, modified_by, modified_at`;
const NOT_EXPIRED = '(expires_at IS NULL OR expires_at > clock_now())';

/** The key is no column: it is shown once and kept as a hash elsewhere. */
export type StoredApplication = Omit<Application, 'key'>;
type ApplicationRow = RowOf<StoredApplication>;

export interface ApplicationValues {
  name: string;
  permissions: Permission[];
  rules: AccessRule[];
  expires_at: Date | null;
}

/** Stores a new application; `undefined` when `expires_at` is not in the future. */
export async function insertApplication(
  client: Queryable,
  tenantId: string,
  application: ApplicationValues & { id: string; type: ApplicationType; created_by: string | null },
): Promise<StoredApplication | undefined> {
  const { id, name, type, permissions, rules, expires_at, created_by } = application;
  const { rows } = await client.query<ApplicationRow>(
    `INSERT INTO applications
       (tenant_id, id, name, type, permissions, rules, expires_at, created_by, created_at)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, clock_now()
     WHERE $7::timestamptz IS NULL OR $7 > clock_now()
     RETURNING ${COLUMNS}`,
    [tenantId, id, name, type, permissions, JSON.stringify(rules), expires_at, created_by],
  );
  return rows[0] && omitNulls<StoredApplication>(rows[0]);
}

export async function findApplication(
  db: Queryable,
  tenantId: string,
  id: string,
): Promise<StoredApplication | undefined> {
  const { rows } = await db.query<ApplicationRow>(
    `SELECT ${COLUMNS} FROM applications WHERE tenant_id = $1 AND id = $2 AND ${NOT_EXPIRED}`,
    [tenantId, id],
  );
  return rows[0] && omitNulls<StoredApplication>(rows[0]);
}

export interface ApplicationFilter {
  /** Only these, in this order. */
  ids: string[] | undefined;
  types: string[] | undefined;
}

/** One page of the tenant's applications and the number of all that match. */
export async function listApplications(
  db: Queryable,
  tenantId: string,
  { ids, types }: ApplicationFilter,
  { page, size }: { page: number; size: number },
): Promise<{ applications: StoredApplication[]; total: number }> {
  const matching = `FROM applications
    WHERE tenant_id = $1 AND ($2::uuid[] IS NULL OR id = ANY ($2))
      AND ($3::text[] IS NULL OR type = ANY ($3)) AND ${NOT_EXPIRED}`;
  const filter = [tenantId, ids ?? null, types ?? null];
  const counted = await db.query<{ total: number }>(
    `SELECT count(*)::integer AS total ${matching}`,
    filter,
  );
  const { rows } = await db.query<ApplicationRow>(
    `SELECT ${COLUMNS} ${matching}
     ORDER BY array_position($2, id), created_at DESC, id DESC LIMIT $4 OFFSET $5`,
    [...filter, size, (page - 1) * size],
  );
  const applications = rows.map((row) => omitNulls<StoredApplication>(row));
  return { applications, total: counted.rows[0]?.total ?? 0 };
}

/** Locks the application's row for the rest of the transaction; `undefined` when there is none. */
export async function lockApplication(
  client: Queryable,
  tenantId: string,
  id: string,
): Promise<{ type: ApplicationType; expires_at: Date | null } | undefined> {
  const { rows } = await client.query<{ type: ApplicationType; expires_at: Date | null }>(
    `SELECT type, expires_at FROM applications
     WHERE tenant_id = $1 AND id = $2 AND ${NOT_EXPIRED} FOR UPDATE`,
    [tenantId, id],
  );
  return rows[0];
}

/** Replaces a locked application's values; `undefined` when `expires_at` is not in the future. */
export async function updateApplication(
  client: Queryable,
  tenantId: string,
  id: string,
  { name, permissions, rules, expires_at }: ApplicationValues,
  modifiedBy: string,
): Promise<StoredApplication | undefined> {
  const { rows } = await client.query<ApplicationRow>(
    `UPDATE applications SET name = $3, permissions = $4, rules = $5, expires_at = $6,
       modified_by = $7, modified_at = clock_now()
     WHERE tenant_id = $1 AND id = $2 AND ($6::timestamptz IS NULL OR $6 > clock_now())
     RETURNING ${COLUMNS}`,
    [tenantId, id, name, permissions, JSON.stringify(rules), expires_at, modifiedBy],
  );
  return rows[0] && omitNulls<StoredApplication>(rows[0]);
}

/** Marks the application as changed, which locks its row; `undefined` when there is none. */
export async function touchApplication(
  client: Queryable,
  tenantId: string,
  id: string,
  modifiedBy: string,
): Promise<StoredApplication | undefined> {
  const { rows } = await client.query<ApplicationRow>(
    `UPDATE applications SET modified_by = $3, modified_at = clock_now()
     WHERE tenant_id = $1 AND id = $2 AND ${NOT_EXPIRED} RETURNING ${COLUMNS}`,
    [tenantId, id, modifiedBy],
  );
  return rows[0] && omitNulls<StoredApplication>(rows[0]);
}

/** Removes the row; false when there is none. Its keys are removed by `revokeKeys`. */
export async function deleteApplication(
  client: Queryable,
  tenantId: string,
  id: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `DELETE FROM applications WHERE tenant_id = $1 AND id = $2 AND ${NOT_EXPIRED}`,
    [tenantId, id],
  );
  return rowCount === 1;
}
