/** The control plane as a process: settings from the environment, then serve until a signal. */
import { type Environment, EnvironmentError, readEnvironment } from '../config/environment.ts';
import { type KeyEncryption, localKeyEncryption, parseKek } from '../shared/crypto/local-key.ts';
import { createLogger, type Logger } from '../shared/observability/logger.ts';
import { addProcessMetrics } from '../shared/observability/metrics.ts';
import { startMetricsServer } from '../shared/observability/metrics-server.ts';
import { drainOnSignals } from '../shared/process/drain.ts';
import { endOnCrash } from '../shared/process/end-on-crash.ts';
import { hasParent, linkToParent } from '../shared/process/parent-link.ts';
import { retryUntilAvailable } from '../shared/process/retry-until-available.ts';
import { createControlPlane, type RunningControlPlane } from './create-control-plane.ts';
import { migrate } from './migrate.ts';

/** The data plane's is 9090, so that both can run on one machine. */
const DEFAULT_METRICS_PORT = 9091;

function readKek({ kek }: Environment): KeyEncryption {
  const bytes = kek === undefined ? undefined : parseKek(kek);
  if (bytes === undefined) {
    throw new EnvironmentError('SALLYPORT_KEK or SALLYPORT_KEK_FILE must be set');
  }
  return localKeyEncryption(bytes);
}

function readDatabaseUrl({ databaseUrl }: Environment): string {
  if (databaseUrl === undefined) throw new EnvironmentError('DATABASE_URL must be set');
  return databaseUrl;
}

/** Started by `npm start`: the parent migrated, collects the metrics and decides who may connect. */
async function runWithParent(plane: RunningControlPlane): Promise<void> {
  const { metrics, readiness } = plane;
  const parent = linkToParent({ registry: metrics.registry, readiness });
  parent.announce(await plane.start());
}

/** Started by itself: its own schema, its own listener for metrics. */
async function runAlone(
  plane: RunningControlPlane,
  environment: Environment,
  kek: KeyEncryption,
  log: Logger,
): Promise<void> {
  const { registry } = plane.metrics;
  await startMetricsServer({
    port: environment.metricsPort ?? DEFAULT_METRICS_PORT,
    collect: () => registry.metrics(),
    readiness: plane.readiness,
  });
  const url = environment.databaseDirectUrl ?? readDatabaseUrl(environment);
  for (const migration of await retryUntilAvailable(() => migrate(url, kek), log)) {
    log.info({ migration }, 'migrated');
  }
  log.info({ port: await plane.start() }, 'control plane is ready');
}

async function run(environment: Environment): Promise<void> {
  const log = createLogger('control-plane', environment.logLevel);
  endOnCrash(log);
  const kek = readKek(environment);
  const plane = createControlPlane(
    {
      databaseUrl: readDatabaseUrl(environment),
      databasePoolMax: environment.databasePoolMax,
      kek,
      redisUrl: environment.redisUrl,
      testClockOffsetSeconds: environment.testClockOffsetSeconds,
      port: environment.controlPlanePort,
      host: hasParent() ? '127.0.0.1' : undefined,
    },
    log,
  );
  addProcessMetrics(plane.metrics);
  drainOnSignals({ log, stop: plane.stop });
  await (hasParent() ? runWithParent(plane) : runAlone(plane, environment, kek, log));
}

try {
  await run(readEnvironment(process.env));
} catch (error) {
  // One line for the terminal; a stack would show where, but never what to do.
  const reason = error instanceof Error ? error.message : 'an unknown error';
  process.stderr.write(`sallyport control plane: ${reason}\n`);
  process.exit(1);
}
