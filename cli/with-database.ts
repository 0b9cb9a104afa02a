/**
 * Opens the database for one command: beside a running Sallyport, or on its own when none runs, and
 * then leaves everything stopped as it was.
 */
import { readEnvironment } from '../config/environment.ts';
import { openSharedDatabase, withInstallation } from '../embedded/open-database.ts';
import type { Installation } from '../shared/crypto/installation.ts';
import { createLogger } from '../shared/observability/logger.ts';
import type { Pool } from '../shared/postgres/pool.ts';

/** Runs `work` on the migrated database that the environment names. */
export async function withDatabase<T>(
  source: NodeJS.ProcessEnv,
  work: (pool: Pool, installation: Installation) => Promise<T>,
): Promise<T> {
  const environment = readEnvironment(source);
  const log = createLogger(
    'sallyport',
    environment.logLevel === 'info' ? 'warn' : environment.logLevel,
  );
  const database = await openSharedDatabase(environment, log);
  try {
    await database.migrate();
    return await withInstallation(database, log, work);
  } finally {
    await database.close();
  }
}
