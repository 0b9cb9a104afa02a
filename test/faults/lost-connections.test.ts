/**
 * What the pool does with connections that are lost in every way there is: none ends the process, none
 * is used again, and what could not be answered says so.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { createLogger } from '../../shared/observability/logger.ts';
import { isDatabaseUnavailable } from '../../shared/postgres/database-error.ts';
import { createPool, inTransaction, type Pool } from '../../shared/postgres/pool.ts';
import { withPatience } from '../../shared/postgres/silence.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

const CONNECTIONS = 4;
const log = createLogger('test', 'silent');

describe('a pool whose connections are lost', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let admin: pg.Client;
  let pool: Pool;

  before(async () => {
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.connectionString);
    admin = new pg.Client({ connectionString: database.adminConnectionString });
    await admin.connect();
  });
  after(async () => {
    await admin?.end();
    await proxy?.close();
    await database?.drop();
  });
  beforeEach(() => {
    const { connectionString } = proxy;
    pool = createPool({ connectionString, max: CONNECTIONS, applicationName: 'lost', log });
  });
  afterEach(() => pool.end());

  const serve = async (): Promise<number> =>
    (await pool.query<{ one: number }>('SELECT 1 AS one')).rows[0]?.one ?? 0;
  /** Every connection of the pool is open and idle. */
  const warm = async (): Promise<void> => {
    const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.connect()));
    for (const client of clients) client.release();
  };
  const terminate = async (): Promise<number> => {
    const { rowCount } = await admin.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lost'`,
    );
    return rowCount ?? 0;
  };

  it('lets a statement take 1.9 s, and wait for a lock for 1 s of them', async () => {
    const { rows } = await pool.query(
      `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock`,
    );
    expect(rows).to.deep.equal([{ statement: '1900ms', lock: '1s' }]);
  });

  it('acknowledges no transaction that was undone because a statement of it failed', async () => {
    const undone = inTransaction(pool, async (client) => {
      await client.query('SELECT 1 / 0').catch(() => undefined);
      return 'acknowledged';
    });
    expect(await undone.catch((error: Error) => error.message)).to.include('undone');
    expect(await serve()).to.equal(1);
  });

  // An error without a listener would end the process of these tests.
  it('goes on when the server ends one that is checked out, idle in a transaction', async () => {
    const client = await pool.connect();
    await client.query('BEGIN');
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    expect(await terminate()).to.equal(1);
    await ended;
    const error = await client.query('SELECT 1').catch((reason: unknown) => reason);
    expect(isDatabaseUnavailable(error), String(error)).to.equal(true);
    client.release();
    expect(await serve()).to.equal(1);
  });

  it('goes on when the server ends all that are idle', async () => {
    await warm();
    expect(await terminate()).to.equal(CONNECTIONS);
    while (pool.totalCount > 0) await new Promise((resolve) => pool.once('remove', resolve));
    expect(await Promise.all([serve(), serve()])).to.deep.equal([1, 1]);
  });

  it('fails the transaction that one is lost in, and commits none of it', async () => {
    await pool.query('CREATE TABLE IF NOT EXISTS half (n integer)');
    const error = await inTransaction(pool, async (client) => {
      await client.query('INSERT INTO half VALUES (1)');
      await terminate();
      await client.query('INSERT INTO half VALUES (2)');
    }).catch((reason: unknown) => reason);
    expect(isDatabaseUnavailable(error), String(error)).to.equal(true);
    expect((await pool.query('SELECT n FROM half')).rows).to.deep.equal([]);
  });

  it('replaces those that were forgotten on the way without a word', async () => {
    await warm();
    proxy.forgetConnections();
    const failed = await Promise.allSettled(Array.from({ length: CONNECTIONS }, serve));
    for (const one of failed) {
      expect(one.status === 'rejected' && isDatabaseUnavailable(one.reason)).to.equal(true);
    }
    expect(await Promise.all(Array.from({ length: CONNECTIONS }, serve))).to.deep.equal(
      Array.from({ length: CONNECTIONS }, () => 1),
    );
  });

  it('keeps one that has been idle for longer than a statement may take', async () => {
    const pid = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows;
    const before = await pid();
    await delay(2_500);
    expect(await pid()).to.deep.equal(before);
    expect(pool.totalCount).to.equal(1);
  });

  it('waits for longer where that is asked for, and no longer afterwards', async () => {
    const slow = 'SELECT pg_sleep(2.5)';
    await inTransaction(pool, async (client) => {
      await client.query('SET LOCAL statement_timeout = 10000');
      await withPatience(client, 10_000, () => client.query(slow));
      const error = await client.query(slow).catch((reason: unknown) => reason);
      expect(isDatabaseUnavailable(error), String(error)).to.equal(true);
    }).catch((reason: unknown) => expect(isDatabaseUnavailable(reason)).to.equal(true));
    expect(await serve()).to.equal(1);
  });

  it('replaces one that was forgotten in a transaction', async () => {
    const error = await inTransaction(pool, async (client) => {
      proxy.forgetConnections();
      await client.query('SELECT 1');
    }).catch((reason: unknown) => reason);
    expect(isDatabaseUnavailable(error), String(error)).to.equal(true);
    expect(pool.totalCount).to.equal(0);
    expect(await serve()).to.equal(1);
  });

  it('can be ended while they are forgotten', async () => {
    await warm();
    proxy.forgetConnections();
    const other = createPool({
      ...{ connectionString: proxy.connectionString, max: 1, applicationName: 'other', log },
    });
    await other.query('SELECT 1');
    proxy.forgetConnections();
    await other.end();
  });
});
