/** Reactor formulas in Postgres. Every statement names the tenant first. */
import type { ReactorFormula } from '../../shared/api/reactor-formulas.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { omitNulls, type RowOf } from '../omit-nulls.ts';
import { refuseLargePage } from '../page-bytes.ts';
import type { Declarations } from './declarations.ts';

const COLUMNS = `id, type, status, name, description, icon, code, configuration,
  request_parameters, created_by, created_at, modified_by, modified_at`;

/** What answers with the formula in them carry of it, bytes as stored. */
const bytesOf = (formula: string): string =>
  `(octet_length(${formula}.code) + coalesce(octet_length(${formula}.icon), 0)
    + octet_length(${formula}.configuration::text)
    + octet_length(${formula}.request_parameters::text))`;

type FormulaRow = RowOf<ReactorFormula>;

export interface FormulaValues extends Declarations {
  name: string;
  description: string | null;
  icon: string | null;
  code: string;
}

const parameters = (tenantId: string, id: string, values: FormulaValues): unknown[] => [
  ...[tenantId, id, values.name, values.description, values.icon, values.code],
  ...[JSON.stringify(values.configuration), JSON.stringify(values.request_parameters)],
];

/** Stores a new formula; `undefined` when the id is taken in this tenant. */
export async function insertFormula(
  client: Queryable,
  tenantId: string,
  id: string,
  values: FormulaValues,
  createdBy: string,
): Promise<ReactorFormula | undefined> {
  const { rows } = await client.query<FormulaRow>(
    `INSERT INTO reactor_formulas (tenant_id, id, type, status, name, description, icon, code,
       code_version, configuration, request_parameters, created_by, created_at)
     VALUES ($1, $2, 'private', 'verified', $3, $4, $5, $6, gen_random_uuid(), $7, $8, $9,
       clock_now())
     ON CONFLICT (tenant_id, id) DO NOTHING RETURNING ${COLUMNS}`,
    [...parameters(tenantId, id, values), createdBy],
  );
  return rows[0] && omitNulls<ReactorFormula>(rows[0]);
}

/** Those of `ids` that exist, in no order. */
export async function findFormulas(
  db: Queryable,
  tenantId: string,
  ids: readonly string[],
): Promise<ReactorFormula[]> {
  if (ids.length === 0) return [];
  const { rows } = await db.query<FormulaRow>(
    `SELECT ${COLUMNS} FROM reactor_formulas WHERE tenant_id = $1 AND id = ANY ($2::uuid[])`,
    [tenantId, ids],
  );
  return rows.map((row) => omitNulls<ReactorFormula>(row));
}

export async function findFormula(
  db: Queryable,
  tenantId: string,
  id: string,
): Promise<ReactorFormula | undefined> {
  return (await findFormulas(db, tenantId, [id]))[0];
}

/**
 * One page of the tenant's formulas, newest first, and the number of all that match. `pattern` is for
 * `~`. Throws 400 for a page that would be too large.
 */
export async function listFormulas(
  db: Queryable,
  tenantId: string,
  pattern: string | undefined,
  { page, size }: { page: number; size: number },
): Promise<{ formulas: ReactorFormula[]; total: number }> {
  const matching = `FROM reactor_formulas f
    WHERE tenant_id = $1 AND ($2::text IS NULL OR name ~ $2)`;
  const window = 'ORDER BY created_at DESC, id DESC LIMIT $3 OFFSET $4';
  const filter = [tenantId, pattern ?? null];
  const paged = [...filter, size, (page - 1) * size];
  const measured = await db.query<{ total: number; bytes: number }>(
    `SELECT (SELECT count(*)::integer ${matching}) AS total,
       (SELECT coalesce(sum(bytes), 0)::float8 FROM
         (SELECT ${bytesOf('f')} AS bytes ${matching} ${window}) p) AS bytes`,
    paged,
  );
  refuseLargePage(measured.rows[0]?.bytes ?? 0);
  const { rows } = await db.query<FormulaRow>(`SELECT ${COLUMNS} ${matching} ${window}`, paged);
  const formulas = rows.map((row) => omitNulls<ReactorFormula>(row));
  return { formulas, total: measured.rows[0]?.total ?? 0 };
}

/** Replaces everything but id and type; `undefined` when there is none. */
export async function updateFormula(
  client: Queryable,
  tenantId: string,
  id: string,
  values: FormulaValues,
  modifiedBy: string,
): Promise<ReactorFormula | undefined> {
  const { rows } = await client.query<FormulaRow>(
    `UPDATE reactor_formulas SET name = $3, description = $4, icon = $5, code = $6,
       code_version = CASE WHEN code = $6 THEN code_version ELSE gen_random_uuid() END,
       configuration = $7, request_parameters = $8, modified_by = $9, modified_at = clock_now()
     WHERE tenant_id = $1 AND id = $2 RETURNING ${COLUMNS}`,
    [...parameters(tenantId, id, values), modifiedBy],
  );
  return rows[0] && omitNulls<ReactorFormula>(rows[0]);
}

/** Removes the formula; false when there is none. */
export async function deleteFormula(
  client: Queryable,
  tenantId: string,
  id: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    'DELETE FROM reactor_formulas WHERE tenant_id = $1 AND id = $2',
    [tenantId, id],
  );
  return rowCount === 1;
}
