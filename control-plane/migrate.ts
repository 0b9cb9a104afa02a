/**
 * Brings a database to the current schema: numbered migrations, forward only, safe to run twice and
 * from several nodes at once, and leaves the installation's secrets in it.
 */
import knexModule, { type Knex } from 'knex';
import pg from 'pg';
import { ensurePartitions } from '../shared/audit/partitions.ts';
import { createInstallation } from '../shared/crypto/installation.ts';
import type { KeyEncryption } from '../shared/crypto/local-key.ts';
import { ADVISORY_LOCKS } from '../shared/postgres/advisory-locks.ts';
import * as tenants from './migrations/0001-tenants.ts';
import * as applications from './migrations/0002-applications.ts';
import * as tokens from './migrations/0003-tokens.ts';
import * as reactors from './migrations/0004-reactors.ts';
import * as proxies from './migrations/0005-proxies.ts';
import * as idempotency from './migrations/0006-idempotency.ts';
import * as transactions from './migrations/0007-transactions.ts';
import * as jobs from './migrations/0008-jobs.ts';
import * as audit from './migrations/0009-audit.ts';
import * as idempotencyTokens from './migrations/0010-idempotency-tokens.ts';

interface Migration {
  name: string;
  up(knex: Knex): Promise<void>;
}

const MIGRATIONS: Migration[] = [
  { name: '0001-tenants', up: tenants.up },
  { name: '0002-applications', up: applications.up },
  { name: '0003-tokens', up: tokens.up },
  { name: '0004-reactors', up: reactors.up },
  { name: '0005-proxies', up: proxies.up },
  { name: '0006-idempotency', up: idempotency.up },
  { name: '0007-transactions', up: transactions.up },
  { name: '0008-jobs', up: jobs.up },
  { name: '0009-audit', up: audit.up },
  { name: '0010-idempotency-tokens', up: idempotencyTokens.up },
];

const SOURCE: Knex.MigrationSource<Migration> = {
  getMigrations: async () => MIGRATIONS,
  getMigrationName: (migration) => migration.name,
  getMigration: async ({ up }) => ({
    up,
    down: () => Promise.reject(new Error('migrations go forward only')),
  }),
};

/**
 * Runs what is missing and returns the names of the migrations it ran. Other nodes wait on an
 * advisory lock, which a crash releases; knex's own lock row, which a crash leaves, is freed first.
 */
export async function migrate(connectionString: string, kek: KeyEncryption): Promise<string[]> {
  const guard = new pg.Client({ connectionString });
  await guard.connect();
  const knex = knexModule({ client: 'pg', connection: connectionString, pool: { min: 0, max: 1 } });
  try {
    await guard.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.migrate]);
    const config: Knex.MigratorConfig = { migrationSource: SOURCE, tableName: 'migrations' };
    await knex.migrate.forceFreeMigrationsLock(config);
    const [, ran] = (await knex.migrate.latest(config)) as [number, string[]];
    await createInstallation(guard, kek);
    await ensurePartitions(guard);
    return ran;
  } finally {
    await knex.destroy();
    await guard.end();
  }
}

/** Whether the database has every migration this version of Sallyport knows. */
export async function isMigrated(db: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  const { rows } = await db.query<{ name: string }>('SELECT name FROM migrations');
  const names = new Set(rows.map((row) => row.name));
  return MIGRATIONS.every((migration) => names.has(migration.name));
}
