/** Reactors in Postgres. Every statement names the tenant first; configurations stay sealed here. */
import type { Reactor } from '../../shared/api/reactors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import type { ListFilter } from '../list-filter.ts';
import type { RowOf } from '../omit-nulls.ts';
import { refuseLargePage } from '../page-bytes.ts';

/** A time of debugging that has passed is none. */
const COLUMNS = `id, tenant_id, name, formula_id, code, application_id, configuration_sealed,
  CASE WHEN debug_until > clock_now() THEN debug_until END AS debug_until,
  created_by, created_at, modified_by, modified_at`;

/** What a caller may change. Exactly one of `formula_id`, `code` is set. */
export interface ReactorValues {
  name: string;
  formula_id: string | null;
  code: string | null;
  application_id: string | null;
  configuration_sealed: Buffer | null;
  debug_until: Date | null;
}

type Embedded = 'formula' | 'application' | 'configuration';
type Columns = RowOf<Omit<Reactor, Embedded | keyof ReactorValues>>;
export type ReactorRow = Columns & ReactorValues & Pick<Reactor, 'id' | 'tenant_id'>;

const parameters = (tenantId: string, id: string, values: ReactorValues): unknown[] => [
  ...[tenantId, id, values.name, values.formula_id, values.code, values.application_id],
  ...[values.configuration_sealed, values.debug_until],
];

export async function insertReactor(
  client: Queryable,
  tenantId: string,
  id: string,
  values: ReactorValues,
  createdBy: string,
): Promise<ReactorRow | undefined> {
  const { rows } = await client.query<ReactorRow>(
    `INSERT INTO reactors (tenant_id, id, name, formula_id, code, code_version, application_id,
       configuration_sealed, debug_until, created_by, created_at)
     VALUES ($1, $2, $3, $4, $5, CASE WHEN $5::text IS NOT NULL THEN gen_random_uuid() END, $6,
       $7, $8, $9, clock_now())
     RETURNING ${COLUMNS}`,
    [...parameters(tenantId, id, values), createdBy],
  );
  return rows[0];
}

export async function findReactor(
  db: Queryable,
  tenantId: string,
  id: string,
): Promise<ReactorRow | undefined> {
  const { rows } = await db.query<ReactorRow>(
    `SELECT ${COLUMNS} FROM reactors WHERE tenant_id = $1 AND id = $2`,
    [tenantId, id],
  );
  return rows[0];
}

/** The same, with its row locked for the rest of the transaction. */
export async function lockReactor(
  client: Queryable,
  tenantId: string,
  id: string,
): Promise<ReactorRow | undefined> {
  const { rows } = await client.query<ReactorRow>(
    `SELECT ${COLUMNS} FROM reactors WHERE tenant_id = $1 AND id = $2 FOR UPDATE`,
    [tenantId, id],
  );
  return rows[0];
}

/**
 * One page of the tenant's reactors and the number of all that match. Throws 400 for a page that,
 * with the formulas in it, would be too large.
 */
export async function listReactors(
  db: Queryable,
  tenantId: string,
  { ids, pattern }: ListFilter,
  { page, size }: { page: number; size: number },
): Promise<{ reactors: ReactorRow[]; total: number }> {
  const matching = `FROM reactors
    WHERE tenant_id = $1 AND ($2::uuid[] IS NULL OR id = ANY ($2))
      AND ($3::text IS NULL OR name ~ $3)`;
  const window = 'ORDER BY array_position($2, id), created_at DESC, id DESC LIMIT $4 OFFSET $5';
  const paged = [tenantId, ids ?? null, pattern ?? null, size, (page - 1) * size];
  const measured = await db.query<{ total: number; bytes: number }>(
    `SELECT (SELECT count(*)::integer ${matching}) AS total, coalesce(sum(
         coalesce(octet_length(coalesce(p.code, f.code)), 0) + coalesce(octet_length(f.icon), 0)
         + coalesce(octet_length(p.configuration_sealed), 0)), 0)::float8 AS bytes
     FROM (SELECT formula_id, code, configuration_sealed ${matching} ${window}) p
     LEFT JOIN reactor_formulas f ON f.tenant_id = $1 AND f.id = p.formula_id`,
    paged,
  );
  refuseLargePage(measured.rows[0]?.bytes ?? 0);
  const { rows } = await db.query<ReactorRow>(`SELECT ${COLUMNS} ${matching} ${window}`, paged);
  return { reactors: rows, total: measured.rows[0]?.total ?? 0 };
}

/** Replaces a locked reactor's values; its formula stays. */
export async function updateReactor(
  client: Queryable,
  tenantId: string,
  id: string,
  values: ReactorValues,
  modifiedBy: string,
): Promise<ReactorRow | undefined> {
  const { rows } = await client.query<ReactorRow>(
    `UPDATE reactors SET name = $3, code = $5,
       code_version = CASE WHEN code = $5 THEN code_version
         WHEN $5::text IS NOT NULL THEN gen_random_uuid() END,
       application_id = $6, configuration_sealed = $7, debug_until = $8,
       modified_by = $9, modified_at = clock_now()
     WHERE tenant_id = $1 AND id = $2 AND formula_id IS NOT DISTINCT FROM $4
     RETURNING ${COLUMNS}`,
    [...parameters(tenantId, id, values), modifiedBy],
  );
  return rows[0];
}

/** Removes the reactor; false when there is none. */
export async function deleteReactor(
  client: Queryable,
  tenantId: string,
  id: string,
): Promise<boolean> {
  const { rowCount } = await client.query('DELETE FROM reactors WHERE tenant_id = $1 AND id = $2', [
    tenantId,
    id,
  ]);
  return rowCount === 1;
}

/** Whether a reactor of the tenant runs the code of this formula. */
export async function isFormulaUsed(
  client: Queryable,
  tenantId: string,
  formulaId: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    'SELECT 1 FROM reactors WHERE tenant_id = $1 AND formula_id = $2 LIMIT 1',
    [tenantId, formulaId],
  );
  return rowCount === 1;
}
