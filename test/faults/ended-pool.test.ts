/** A pool that has ended: nothing of it is left at the server, which may be stopped without a warning. */
import { expect } from 'chai';
import pg from 'pg';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool, endPool } from '../../shared/postgres/pool.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

const CONNECTIONS = 8;

describe('a pool of connections', () => {
  let database: TestDatabase;
  let admin: pg.Client;
  before(async () => {
    database = await createTestDatabase();
    admin = new pg.Client({ connectionString: database.adminConnectionString });
    await admin.connect();
  });
  after(async () => {
    await admin?.end();
    await database?.drop();
  });

  async function connectionsOf(applicationName: string): Promise<number> {
    const { rows } = await admin.query<{ count: number }>(
      'SELECT count(*)::int4 FROM pg_stat_activity WHERE datname = $1 AND application_name = $2',
      [database.name, applicationName],
    );
    return rows[0]?.count ?? 0;
  }

  it('has ended when the server has closed each of them', async () => {
    const log = createLogger('test', 'silent');
    const { connectionString } = database;
    for (let round = 0; round < 5; round += 1) {
      const applicationName = `ended-${round}`;
      const pool = createPool({ connectionString, max: CONNECTIONS, applicationName, log });
      const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.connect()));
      for (const client of clients) client.release();
      expect(await connectionsOf(applicationName)).to.equal(CONNECTIONS);
      await endPool(pool);
      expect(await connectionsOf(applicationName)).to.equal(0);
    }
  });

  it('has ended at once when it never had any', async () => {
    const log = createLogger('test', 'silent');
    const { connectionString } = database;
    await endPool(createPool({ connectionString, max: 1, applicationName: 'none', log }));
  });
});
