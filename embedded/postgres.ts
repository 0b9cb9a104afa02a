/**
 * The embedded PostgreSQL server: created on the first start, kept running while its owner lives,
 * stopped cleanly. Reachable through a socket in a closed directory only, never by network.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../shared/observability/logger.ts';
import type { DataDir } from './data-dir.ts';
import { postgresUser } from './operating-system-user.ts';
import { installPostgresBinaries } from './postgres-binaries.ts';
import { prepareCluster, prepareSocketDirectory, removeTemporary } from './postgres-cluster.ts';
import * as database from './postgres-database.ts';
import { stopLeftovers } from './postgres-leftovers.ts';
import { type ServerProcess, SUPERUSER, startServer } from './postgres-process.ts';

export interface EmbeddedPostgres {
  /** Sallyport's own database, as `DATABASE_URL`. */
  readonly connectionString: string;
  /** Any database, as superuser: for tests, which make databases from a template. */
  adminConnectionString(name: string): string;
  /** The process id of the running server; changes when it had to be started again. */
  pid(): number;
  /** Ends the server: `fast` ends transactions and writes a checkpoint, `immediate` does neither. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
}

/** The log lines of a server that say that something is wrong. */
const ALARMING = new Set(['FATAL', 'PANIC']);
const FAST_STOP_MS = 10_000;
const IMMEDIATE_STOP_MS = 3_000;
const RESTART_MS_MIN = 100;
const RESTART_MS_MAX = 5_000;

/**
 * Starts the server on a data directory that the caller has locked, creating the cluster and the
 * database where they are missing. A server that dies is started again until `stop`.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: DataDir;
  log: Logger;
}): Promise<EmbeddedPostgres> {
  const { dataDir, log } = options;
  const user = postgresUser();
  await stopLeftovers(dataDir.postgres);
  const socketDirectory = await prepareSocketDirectory(dataDir, user);
  const binaries = () => installPostgresBinaries(dataDir.path, user.foreign);
  const place = { user, socketDirectory };
  const password = await prepareCluster(dataDir, { ...place, binaries: await binaries() });
  const onLine = (severity: string, text: string): void =>
    ALARMING.has(severity) ? log.warn(`postgres: ${text}`) : log.debug(`postgres: ${text}`);
  const launch = async (): Promise<ServerProcess> =>
    startServer({ ...place, binaries: await binaries(), dataDirectory: dataDir.postgres }, onLine);

  const kept = await keepRunning(launch, () => stopLeftovers(dataDir.postgres), log);
  await database.ensureDatabase({ socketDirectory, password }).catch(async (error: unknown) => {
    await kept.stop('fast');
    throw error;
  });
  const connectionStringOf = (role: string, name: string) =>
    database.connectionString({ socketDirectory, password }, role, name);
  return {
    connectionString: connectionStringOf(database.APPLICATION_ROLE, database.APPLICATION_DATABASE),
    adminConnectionString: (name) => connectionStringOf(SUPERUSER, name),
    pid: kept.pid,
    stop: async (mode = 'fast') => {
      await kept.stop(mode);
      await removeTemporary(socketDirectory);
    },
  };
}

async function keepRunning(
  launch: () => Promise<ServerProcess>,
  clearLeftovers: () => Promise<number>,
  log: Logger,
): Promise<Pick<EmbeddedPostgres, 'pid' | 'stop'>> {
  let server = await launch();
  let stopping: 'fast' | 'immediate' | undefined;
  const stopped = Promise.withResolvers<void>();

  async function restart(): Promise<void> {
    for (let delayMs = RESTART_MS_MIN; stopping === undefined; delayMs *= 2) {
      try {
        await clearLeftovers();
        server = await launch();
        log.info('postgres runs again');
        return;
      } catch (err) {
        const jittered = Math.min(delayMs, RESTART_MS_MAX) * (0.5 + Math.random() / 2);
        log.error({ err, delay_ms: Math.round(jittered) }, 'postgres does not start');
        await Promise.race([delay(jittered), stopped.promise]);
      }
    }
  }
  async function watch(): Promise<void> {
    while (stopping === undefined) {
      const how = await server.exited;
      if (stopping !== undefined) return;
      log.error(`postgres ended with ${how}; starting it again`);
      await restart();
    }
    // A server that came up while stop was called.
    await endServer(server, stopping);
  }
  const watching = watch();

  return {
    pid: () => server.pid,
    stop: async (mode = 'fast') => {
      stopping = mode;
      stopped.resolve();
      await endServer(server, mode);
      await watching;
    },
  };
}

async function endServer(server: ServerProcess, mode: 'fast' | 'immediate'): Promise<void> {
  const steps = [
    ...(mode === 'fast' ? ([['SIGINT', FAST_STOP_MS]] as const) : []),
    ['SIGQUIT', IMMEDIATE_STOP_MS],
  ] as const;
  for (const [signal, patience] of steps) {
    server.kill(signal);
    if (await endsWithin(server, patience)) return;
  }
  server.kill('SIGKILL');
  await server.exited;
}

async function endsWithin(server: ServerProcess, patience: number): Promise<boolean> {
  const timer = new AbortController();
  const late = delay(patience, false, { signal: timer.signal }).catch(() => false);
  const inTime = await Promise.race([server.exited.then(() => true), late]);
  timer.abort();
  return inTime;
}
