/** What is left of a deleted tenant goes, however long its rows take to be removed. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { purgeDeletedTenants } from '../../control-plane/tenants/purge-deleted-tenants.ts';
import type { Pool } from '../../shared/postgres/pool.ts';
import { createTestPool, type TestPool } from '../support/postgres.ts';

/** Together more than a statement may take. */
const ROWS = 240;
const ROW_SECONDS = 0.01;

describe('the rows of a deleted tenant', () => {
  let database: TestPool;
  let pool: Pool;
  before(async () => {
    database = await createTestPool(2);
    pool = database.pool;
  });
  after(() => database?.drop());

  it('are removed in batches as large as time allows', async () => {
    const [tenant, other] = [randomUUID(), randomUUID()];
    for (const [tenantId, count] of [
      [tenant, ROWS],
      [other, 1],
    ]) {
      await pool.query(
        `INSERT INTO reactor_results (tenant_id, id, reactor_id, application_id, sealed)
         SELECT $1::uuid, gen_random_uuid(), $1::uuid, $1::uuid, 'sealed'
         FROM generate_series(1, $2)`,
        [tenantId, count],
      );
    }
    await pool.query('INSERT INTO tenant_deletions VALUES ($1, clock_now())', [tenant]);
    await pool.query(`
      CREATE FUNCTION slow_row() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(${ROW_SECONDS}); RETURN OLD; END';
      CREATE TRIGGER slow_row BEFORE DELETE ON reactor_results
        FOR EACH ROW EXECUTE FUNCTION slow_row()`);
    expect(await purgeDeletedTenants(pool)).to.equal(ROWS);
    const { rows } = await pool.query('SELECT tenant_id FROM reactor_results');
    expect(rows).to.deep.equal([{ tenant_id: other }]);
  });
});
