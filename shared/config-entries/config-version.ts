/** The tenant's configuration version and the database's time, in one read. */
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';

export interface ConfigReading {
  /** `null` when the tenant no longer exists. */
  config_version: string | null;
  /** The database's clock, milliseconds since the epoch. */
  now_ms: number;
}

/** One reading per tenant id, in the order asked for. */
export async function readConfigVersions(
  db: Queryable,
  tenantIds: string[],
): Promise<ConfigReading[]> {
  const { rows } = await db.query<ConfigReading>({
    name: 'read-config-versions',
    text: `
      SELECT t.config_version, ${milliseconds('clock_now()')} AS now_ms
      FROM unnest($1::uuid[]) WITH ORDINALITY AS q (id, n) LEFT JOIN tenants t ON t.id = q.id
      ORDER BY q.n`,
    values: [tenantIds],
  });
  return rows;
}
