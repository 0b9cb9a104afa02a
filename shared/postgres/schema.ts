/** Which schema this version of Sallyport needs. Migrations themselves are the control plane's. */
import type { Queryable } from './pool.ts';

/** The name of the newest migration; a test holds it against the list of migrations. */
export const NEWEST_MIGRATION = '0010-idempotency-tokens';

/** Whether the database has been migrated as far as this version needs. */
export async function hasCurrentSchema(db: Queryable): Promise<boolean> {
  const { rowCount } = await db.query('SELECT 1 FROM migrations WHERE name = $1', [
    NEWEST_MIGRATION,
  ]);
  return rowCount === 1;
}
