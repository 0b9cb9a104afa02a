/** The rows of the audit trail that a tenant's administrators ask for, the newest first. */
import { LOG_TOTAL_MAX } from '../../shared/api/logs.ts';
import type { AuditOperation, EntityType, Via } from '../../shared/audit/audit-entry.ts';
import { type Pool, type Queryable, withFittingPlans } from '../../shared/postgres/pool.ts';
import type { LogPlace } from './log-cursor.ts';

export interface LogFilter {
  readonly entity_type: string | undefined;
  readonly entity_id: string | undefined;
  /** Not before. */
  readonly start_date: Date | undefined;
  /** Before. */
  readonly end_date: Date | undefined;
}

export interface LogRow {
  id: string;
  tenant_id: string;
  actor_id: string | null;
  actor_type: string;
  entity_type: EntityType;
  entity_id: string | null;
  operation: AuditOperation;
  via_type: Via['type'] | null;
  via_id: string | null;
  denied: boolean;
  created_at: Date;
  /** `created_at`, exactly. */
  micros: string;
}

export interface LogWindow {
  readonly limit: number;
  /** How many to leave out, or behind which place to begin. */
  readonly from: number | LogPlace;
}

const COLUMNS = `id, tenant_id, actor_id, actor_type, entity_type, entity_id, operation, via_type,
  via_id, denied, created_at, (extract(epoch FROM created_at) * 1000000)::int8::text AS micros`;

class Conditions {
  readonly values: unknown[] = [];
  readonly #texts: string[] = [];

  add(text: (...parameters: string[]) => string, ...values: unknown[]): void {
    this.#texts.push(text(...values.map((value) => `$${this.values.push(value)}`)));
  }

  toString(): string {
    return this.#texts.join(' AND ');
  }
}

function conditionsOf(tenantId: string, filter: LogFilter): Conditions {
  const conditions = new Conditions();
  const { entity_type, entity_id, start_date, end_date } = filter;
  conditions.add((id) => `tenant_id = ${id}`, tenantId);
  if (entity_type !== undefined) conditions.add((type) => `entity_type = ${type}`, entity_type);
  // Said in so many words, for the index without the rows of tokens.
  if (entity_type !== undefined && entity_type !== 'token') {
    conditions.add(() => `entity_type <> 'token'`);
  }
  if (entity_id !== undefined) conditions.add((id) => `entity_id = ${id}`, entity_id);
  if (start_date !== undefined) conditions.add((date) => `created_at >= ${date}`, start_date);
  if (end_date !== undefined) conditions.add((date) => `created_at < ${date}`, end_date);
  return conditions;
}

export function listLogs(
  pool: Pool,
  tenantId: string,
  filter: LogFilter,
  { limit, from }: LogWindow,
): Promise<LogRow[]> {
  const conditions = conditionsOf(tenantId, filter);
  if (typeof from !== 'number') {
    conditions.add(
      (micros, id) =>
        `(created_at, id) < (timestamptz 'epoch' + ${micros}::int8 * interval '1 us', ${id}::uuid)`,
      from.micros,
      from.id,
    );
  }
  const offset = typeof from === 'number' ? from : 0;
  return withFittingPlans(pool, async (client) => {
    const { rows } = await client.query<LogRow>(
      `SELECT ${COLUMNS} FROM audit_log WHERE ${conditions}
       ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`,
      conditions.values,
    );
    return rows;
  });
}

/** Counts no further than totals go, so that it costs the same in a trail of any length. */
export async function countLogs(
  db: Queryable,
  tenantId: string,
  filter: LogFilter,
): Promise<number> {
  const conditions = conditionsOf(tenantId, filter);
  const { rows } = await db.query<{ count: number }>(
    `SELECT count(*)::int4 AS count FROM (
       SELECT 1 FROM audit_log WHERE ${conditions} LIMIT ${LOG_TOTAL_MAX}) r`,
    conditions.values,
  );
  return rows[0]?.count ?? 0;
}
