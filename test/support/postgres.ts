/**
 * A database of its own for each test file: a clone of the migrated template, gone when the file is
 * done. Real Postgres, real migrations, nothing shared between files.
 */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool, type Pool } from '../../shared/postgres/pool.ts';
import { TEMPLATE_DATABASE, testServer, urlOf } from './test-server.ts';

export interface TestDatabase {
  readonly name: string;
  /** As `DATABASE_URL`: the role Sallyport uses, not the superuser. */
  readonly connectionString: string;
  /** As `SALLYPORT_KEK`: the key this database's installation key is wrapped with. */
  readonly kek: string;
  /** Superuser, same database: to look at and tamper with what is stored. */
  readonly adminConnectionString: string;
  /** `DATA_DIR` of the Postgres server, for tests that read what reached the disk. */
  readonly serverDataDir: string;
  drop(): Promise<void>;
}

/** Clones the template. Call it in `before`, and `drop` in `after`. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const server = await testServer();
  const name = `test_${randomBytes(6).toString('hex')}`;
  const admin = urlOf(server.adminUrl, 'postgres');
  await run(admin, `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE_DATABASE} OWNER sallyport`);
  return {
    name,
    connectionString: urlOf(server.roleUrl, name),
    kek: server.kek,
    adminConnectionString: urlOf(server.adminUrl, name),
    serverDataDir: server.dataDir,
    drop: () => run(admin, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

export interface TestPool {
  readonly database: TestDatabase;
  /** Connections as the product has them. */
  readonly pool: Pool;
  /** Ends the pool first. */
  drop(): Promise<void>;
}

/** A database of its own with a pool of at most `max` connections to it. */
export async function createTestPool(max: number): Promise<TestPool> {
  const database = await createTestDatabase();
  const { connectionString } = database;
  const log = createLogger('test', 'silent');
  const pool = createPool({ connectionString, max, applicationName: 'test', log });
  return {
    database,
    pool,
    async drop() {
      await pool.end();
      await database.drop();
    },
  };
}

async function run(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
