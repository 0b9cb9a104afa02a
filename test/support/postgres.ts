/**
 * A database of its own for each test file: a clone of the migrated template, gone when the file is
 * done. Real Postgres, real migrations, nothing shared between files.
 */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
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

async function run(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
