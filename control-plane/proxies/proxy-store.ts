/** Proxies in Postgres. Every statement names the tenant first; keys and configurations stay sealed here. */
import type { LeakTripwire, ProxyAnswer } from '../../shared/api/proxies.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import type { ListFilter } from '../list-filter.ts';
import type { RowOf } from '../omit-nulls.ts';
import { refuseLargePage } from '../page-bytes.ts';

const COLUMNS = `id, tenant_id, name, destination_url, key_sealed, require_auth, request_transform,
  response_transform, application_id, configuration_sealed, leak_tripwire,
  created_by, created_at, modified_by, modified_at`;

export interface StoredTransform {
  code: string;
  /** Random, new with every change of the code: what sandboxes know a script by. */
  code_version: string;
}

/** What a caller may change. */
export interface ProxyValues {
  name: string;
  destination_url: string;
  require_auth: boolean;
  request_transform: StoredTransform | null;
  response_transform: StoredTransform | null;
  application_id: string | null;
  configuration_sealed: Buffer | null;
  leak_tripwire: LeakTripwire;
}

type Unsealed = 'key' | 'configuration';
type Columns = RowOf<Omit<ProxyAnswer, Unsealed | keyof ProxyValues>>;
export type ProxyRow = Columns &
  ProxyValues &
  Pick<ProxyAnswer, 'id' | 'tenant_id'> & { key_sealed: Buffer };

const parameters = (tenantId: string, id: string, values: ProxyValues): unknown[] => [
  ...[tenantId, id, values.name, values.destination_url, values.require_auth],
  ...[values.request_transform, values.response_transform, values.application_id],
  ...[values.configuration_sealed, values.leak_tripwire],
];

export async function insertProxy(
  client: Queryable,
  tenantId: string,
  id: string,
  values: ProxyValues & { key_sealed: Buffer; created_by: string },
): Promise<ProxyRow | undefined> {
  const { rows } = await client.query<ProxyRow>(
    `INSERT INTO proxies (tenant_id, id, name, destination_url, require_auth, request_transform,
       response_transform, application_id, configuration_sealed, leak_tripwire, key_sealed,
       created_by, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, clock_now())
     RETURNING ${COLUMNS}`,
    [...parameters(tenantId, id, values), values.key_sealed, values.created_by],
  );
  return rows[0];
}

export async function findProxy(
  db: Queryable,
  tenantId: string,
  id: string,
): Promise<ProxyRow | undefined> {
  const { rows } = await db.query<ProxyRow>(
    `SELECT ${COLUMNS} FROM proxies WHERE tenant_id = $1 AND id = $2`,
    [tenantId, id],
  );
  return rows[0];
}

/** The same, with its row locked for the rest of the transaction. */
export async function lockProxy(
  client: Queryable,
  tenantId: string,
  id: string,
): Promise<ProxyRow | undefined> {
  const { rows } = await client.query<ProxyRow>(
    `SELECT ${COLUMNS} FROM proxies WHERE tenant_id = $1 AND id = $2 FOR UPDATE`,
    [tenantId, id],
  );
  return rows[0];
}

/** One page of the tenant's proxies and the number of all that match. Throws 400 for a large one. */
export async function listProxies(
  db: Queryable,
  tenantId: string,
  { ids, pattern }: ListFilter,
  { page, size }: { page: number; size: number },
): Promise<{ proxies: ProxyRow[]; total: number }> {
  const matching = `FROM proxies
    WHERE tenant_id = $1 AND ($2::uuid[] IS NULL OR id = ANY ($2))
      AND ($3::text IS NULL OR name ~ $3)`;
  const window = 'ORDER BY array_position($2, id), created_at DESC, id DESC LIMIT $4 OFFSET $5';
  const paged = [tenantId, ids ?? null, pattern ?? null, size, (page - 1) * size];
  const measured = await db.query<{ total: number; bytes: number }>(
    `SELECT (SELECT count(*)::integer ${matching}) AS total, coalesce(sum(
         coalesce(octet_length(request_transform->>'code'), 0)
         + coalesce(octet_length(response_transform->>'code'), 0)
         + coalesce(octet_length(configuration_sealed), 0)), 0)::float8 AS bytes
     FROM (SELECT request_transform, response_transform, configuration_sealed
           ${matching} ${window}) p`,
    paged,
  );
  refuseLargePage(measured.rows[0]?.bytes ?? 0);
  const { rows } = await db.query<ProxyRow>(`SELECT ${COLUMNS} ${matching} ${window}`, paged);
  return { proxies: rows, total: measured.rows[0]?.total ?? 0 };
}

/** Replaces a locked proxy's values; its key stays. */
export async function updateProxy(
  client: Queryable,
  tenantId: string,
  id: string,
  values: ProxyValues,
  modifiedBy: string,
): Promise<ProxyRow | undefined> {
  const { rows } = await client.query<ProxyRow>(
    `UPDATE proxies SET name = $3, destination_url = $4, require_auth = $5, request_transform = $6,
       response_transform = $7, application_id = $8, configuration_sealed = $9, leak_tripwire = $10,
       modified_by = $11, modified_at = clock_now()
     WHERE tenant_id = $1 AND id = $2
     RETURNING ${COLUMNS}`,
    [...parameters(tenantId, id, values), modifiedBy],
  );
  return rows[0];
}

/** Removes the proxy; false when there is none. Its key is removed by `revokeProxyKey`. */
export async function deleteProxy(
  client: Queryable,
  tenantId: string,
  id: string,
): Promise<boolean> {
  const { rowCount } = await client.query('DELETE FROM proxies WHERE tenant_id = $1 AND id = $2', [
    tenantId,
    id,
  ]);
  return rowCount === 1;
}
