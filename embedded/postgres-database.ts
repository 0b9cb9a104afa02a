/**
 * The role and the database that Sallyport works with inside the embedded server. The role is an
 * ordinary one: whoever gets SQL into a query still cannot read files or run programs.
 */
import pg from 'pg';
import type { DataDir } from './data-dir.ts';
import { readPassword, readSocketDirectory } from './postgres-cluster.ts';
import { SUPERUSER } from './postgres-process.ts';

export const APPLICATION_ROLE = 'sallyport';
export const APPLICATION_DATABASE = 'sallyport';

interface Credentials {
  readonly socketDirectory: string;
  readonly password: string;
}

/** A connection string for `pg`, knex and our own processes. The host in front of `?` is not used. */
export function connectionString(
  { socketDirectory, password }: Credentials,
  role: string,
  database: string,
): string {
  return `postgres://${role}:${password}@localhost/${database}?host=${encodeURIComponent(socketDirectory)}`;
}

/**
 * How another process of the same user reaches the server that runs on `dataDir`; `undefined` when none
 * was ever started there.
 */
export async function runningConnectionString(dataDir: DataDir): Promise<string | undefined> {
  const socketDirectory = await readSocketDirectory(dataDir);
  if (socketDirectory === undefined) return undefined;
  const password = await readPassword(dataDir);
  return connectionString({ socketDirectory, password }, APPLICATION_ROLE, APPLICATION_DATABASE);
}

/** Creates role and database where they are missing. Safe to run at every start. */
export async function ensureDatabase(credentials: Credentials): Promise<void> {
  const admin = new pg.Client({
    connectionString: connectionString(credentials, SUPERUSER, 'postgres'),
  });
  await admin.connect();
  try {
    const roles = await admin.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [
      APPLICATION_ROLE,
    ]);
    if (roles.rowCount === 0) {
      // Utility statements take no parameters; the password is base64url and needs no escape.
      const password = admin.escapeLiteral(credentials.password);
      await admin.query(`CREATE ROLE ${APPLICATION_ROLE} LOGIN PASSWORD ${password}`);
    }
    const databases = await admin.query('SELECT 1 FROM pg_database WHERE datname = $1', [
      APPLICATION_DATABASE,
    ]);
    if (databases.rowCount === 0) {
      await admin.query(`CREATE DATABASE ${APPLICATION_DATABASE} OWNER ${APPLICATION_ROLE}`);
    }
  } finally {
    await admin.end();
  }
}
