/** The data plane as a process: environment, connections, worker, drain. */
import { type Environment, readEnvironment } from '../config/environment.ts';
import manifest from '../package.json' with { type: 'json' };
import { loadInstallation } from '../shared/crypto/installation.ts';
import { localKeyEncryption, parseKek } from '../shared/crypto/local-key.ts';
import { createLogger, type Logger } from '../shared/observability/logger.ts';
import { addProcessMetrics, createMetrics } from '../shared/observability/metrics.ts';
import { startMetricsServer } from '../shared/observability/metrics-server.ts';
import { createPool } from '../shared/postgres/pool.ts';
import { hasCurrentSchema } from '../shared/postgres/schema.ts';
import { drainOnSignals } from '../shared/process/drain.ts';
import { endOnCrash } from '../shared/process/end-on-crash.ts';
import { closeServer } from '../shared/process/listen.ts';
import { hasParent, linkToParent } from '../shared/process/parent-link.ts';
import { checkReadiness } from '../shared/process/readiness.ts';
import { retryUntilAvailable } from '../shared/process/retry-until-available.ts';
import { startWorker } from './worker.ts';

const METRICS_PORT_DEFAULT = 9090;

async function main(environment: Environment, log: Logger): Promise<void> {
  const { databaseUrl } = environment;
  const kek = parseKek(environment.kek ?? '');
  if (databaseUrl === undefined || kek === undefined) {
    throw new Error('a data plane started by itself needs DATABASE_URL and SALLYPORT_KEK');
  }
  const pool = createPool({
    connectionString: databaseUrl,
    max: environment.databasePoolMax,
    applicationName: 'sallyport-data-plane',
    clockOffsetSeconds: environment.testClockOffsetSeconds,
    log,
  });
  const metrics = createMetrics({ version: manifest.version }, pool);
  addProcessMetrics(metrics);
  const installation = await retryUntilAvailable(
    () => loadInstallation(pool, localKeyEncryption(kek)),
    log,
  );
  const directUrl = environment.databaseDirectUrl ?? databaseUrl;
  const worker = await startWorker({ environment, directUrl, pool, installation, metrics, log });
  const drain = drainOnSignals({
    log,
    async stop() {
      worker.drain();
      await closeServer(worker.server);
      await worker.close();
      await pool.end();
    },
  });
  const readiness = () =>
    checkReadiness({
      draining: () => !drain.isDraining(),
      database: async () => (await pool.query('SELECT 1')).rowCount === 1,
      migrations: () => hasCurrentSchema(pool),
    });
  const { registry } = metrics;
  if (hasParent()) {
    linkToParent({ registry, readiness }).announce(worker.port);
  } else {
    const port = environment.metricsPort ?? METRICS_PORT_DEFAULT;
    await startMetricsServer({ port, collect: () => registry.metrics(), readiness });
    log.info({ port: worker.port }, 'listening');
  }
}

const environment = readEnvironment(process.env);
const log = createLogger('data-plane', environment.logLevel);
endOnCrash(log);
await main(environment, log);
