/**
 * All of Sallyport on one machine: database, schema, first tenant, both planes, operators' listener.
 * Each part is put on a list as it comes up, so that a stop or a failure at any moment ends them all.
 */
import { isIPv6 } from 'node:net';
import type { Environment } from '../config/environment.ts';
import type { Logger } from '../shared/observability/logger.ts';
import { startMetricsServer } from '../shared/observability/metrics-server.ts';
import { checkPoolSize, checkPorts, checkTls } from './check-start.ts';
import { compileAhead } from './compile-cache.ts';
import { createFirstTenant, isKnownKey } from './first-start.ts';
import { openDatabase, withInstallation } from './open-database.ts';
import { startPlanes } from './planes.ts';

/** Something that runs: `stop` ends it in order, `kill` at once. */
export interface Part {
  stop(): Promise<void>;
  kill(): void;
}

export interface AllInOne {
  /** Address of the public port. */
  readonly baseUrl: string;
  readonly metricsPort: number;
  /** Settles when this process must not go on: `DATA_DIR` belongs to somebody else now. */
  readonly lost: Promise<void> | undefined;
}

export interface FirstStart {
  /** `undefined` when the operator chose the key. */
  readonly managementKey: string | undefined;
  /** The generated key file; `undefined` when the operator gave the key. */
  readonly kekFile: string | undefined;
}

export interface StartOptions {
  readonly environment: Environment;
  /** What child processes inherit besides the settings. */
  readonly inherited: NodeJS.ProcessEnv;
  readonly log: Logger;
  /** Gets every part as it comes up. */
  readonly parts: Part[];
  /** Called once, on the first start, as soon as the key exists: nobody can ask for it again. */
  readonly onFirstStart: (first: FirstStart) => void;
}

const DEFAULT_METRICS_PORT = 9090;
const LOCAL = ['0.0.0.0', '127.0.0.1', '::', '::1'];
const UNUSED_KEY =
  'a management key exists already: SALLYPORT_BOOTSTRAP_KEY has no effect; `key issue` makes another';

/** Settles when it can serve. Throws what hindered it; the caller then stops `parts`. */
export async function startAllInOne(options: StartOptions): Promise<AllInOne> {
  const { environment, log, parts } = options;
  const metricsPort = environment.metricsPort ?? DEFAULT_METRICS_PORT;
  await checkTls(environment);
  // The lock of DATA_DIR comes first: a second start is that, not a port that is taken.
  const database = await openDatabase(environment, log, () => checkPorts(environment, metricsPort));
  parts.push({ stop: () => database.close(), kill: () => void database.close('immediate') });
  const compiled = compileAhead(environment.dataDir, options.inherited, log);
  await checkPoolSize(database.connectionString, environment.databasePoolMax);
  for (const migration of await database.migrate()) log.debug({ migration }, 'migrated');
  const { bootstrapKey } = environment;
  const first = await withInstallation(database, log, async (pool, installation) => {
    const made = await createFirstTenant(pool, installation, bootstrapKey);
    const isUnused = made === undefined && bootstrapKey !== undefined;
    if (isUnused && !(await isKnownKey(pool, installation, bootstrapKey))) log.warn(UNUSED_KEY);
    return made;
  });
  if (first !== undefined) options.onFirstStart({ ...first, kekFile: database.kekFile });

  const settings = { ...environment, databaseUrl: database.connectionString, kek: database.kek };
  await compiled;
  const planes = await startPlanes(settings, options.inherited, log);
  parts.push(planes);

  let draining = false;
  const listener = await startMetricsServer({
    port: metricsPort,
    host: environment.metricsHost,
    collect: planes.metrics,
    isAlive: planes.isAlive,
    readiness: async () =>
      draining ? { ready: false, problems: ['draining'] } : planes.readiness(),
  });
  const drain = async (): Promise<void> => {
    draining = true;
  };
  // Parts end last to first: "not ready" comes first, and the listener says so to the end.
  parts.unshift({ stop: listener.close, kill: () => void listener.close() });
  parts.push({ stop: drain, kill: () => undefined });

  const scheme = environment.tlsCertFile === undefined ? 'http' : 'https';
  return {
    baseUrl: `${scheme}://${nameOf(environment.listenHost)}:${planes.dataPlane.port}`,
    metricsPort: listener.port,
    lost: database.lost,
  };
}

/** Of an address, in a URL; those that `localhost` leads to are called so, which is what certificates know. */
function nameOf(address: string | undefined): string {
  const isLocal = address === undefined || LOCAL.includes(address);
  if (isLocal) return 'localhost';
  return isIPv6(address) ? `[${address}]` : address;
}
