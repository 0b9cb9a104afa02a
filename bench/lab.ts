/**
 * Where the bench runs: an embedded Postgres of its own in a temporary directory, and everything a
 * claim starts on it. Ends all of it, also when a claim fails.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileAhead, compileCacheEnvironment } from '../embedded/compile-cache.ts';
import { createDataDir, lockDataDir } from '../embedded/data-dir.ts';
import { startEmbeddedPostgres } from '../embedded/postgres.ts';
import { createLogger } from '../shared/observability/logger.ts';

export interface Stoppable {
  stop(): Promise<void>;
}

export interface Lab {
  /** The environment that servers inherit. */
  readonly inherited: NodeJS.ProcessEnv;
  /** Directory for files of the bench; gone at the end. */
  readonly directory: string;
  /** Root of Postgres' processes. */
  postgresPid(): number;
  /** Connection strings of a database of the server: as superuser, and as Sallyport's role. */
  adminUrl(database: string): string;
  roleUrl(database: string): string;
  /** Has it stopped when the claim is done; returns it. */
  keep<T extends Stoppable>(started: T): T;
  /** Stops what was kept, last first. */
  release(): Promise<void>;
  close(): Promise<void>;
}

export async function openLab(inherited: NodeJS.ProcessEnv): Promise<Lab> {
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
  return openIn(directory, inherited).catch(async (error: unknown) => {
    await rm(directory, { recursive: true, force: true });
    throw error;
  });
}

async function openIn(directory: string, inherited: NodeJS.ProcessEnv): Promise<Lab> {
  const log = createLogger('bench', 'warn');
  const dataDir = await createDataDir(join(directory, 'data'));
  const lock = await lockDataDir(dataDir);
  await compileAhead(dataDir.path, inherited, log);
  const postgres = await startEmbeddedPostgres({ dataDir, log });
  const kept: Stoppable[] = [];

  async function release(): Promise<void> {
    for (const started of kept.splice(0).toReversed()) await started.stop();
  }
  return {
    inherited: { ...inherited, ...compileCacheEnvironment(dataDir.path, inherited) },
    directory,
    postgresPid: () => postgres.pid(),
    adminUrl: (database) => postgres.adminConnectionString(database),
    roleUrl: (database) => postgres.connectionString.replace('/sallyport?', `/${database}?`),
    keep(started) {
      kept.push(started);
      return started;
    },
    release,
    async close() {
      await release();
      await postgres.stop('immediate');
      await lock.release();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
