/**
 * A program for tests that kill one: owns the `DATA_DIR` given as argument, runs the embedded Postgres
 * in it, prints how to reach it, logs everything, and waits for SIGTERM.
 */
import { createDataDir, lockDataDir } from '../../embedded/data-dir.ts';
import { startEmbeddedPostgres } from '../../embedded/postgres.ts';
import { createLogger } from '../../shared/observability/logger.ts';

export interface OwnerReport {
  readonly connectionString: string;
  readonly adminConnectionString: string;
  readonly pid: number;
}

if (import.meta.main) {
  const dataDir = await createDataDir(process.argv[2] ?? '');
  const lock = await lockDataDir(dataDir);
  const postgres = await startEmbeddedPostgres({ dataDir, log: createLogger('owner', 'trace') });
  const report: OwnerReport = {
    connectionString: postgres.connectionString,
    adminConnectionString: postgres.adminConnectionString('postgres'),
    pid: postgres.pid(),
  };
  const alive = setInterval(() => undefined, 60_000);
  process.once('SIGTERM', async () => {
    await postgres.stop();
    await lock.release();
    clearInterval(alive);
  });
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
