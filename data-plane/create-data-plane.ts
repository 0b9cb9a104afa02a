/**
 * One data plane: its connections, its worker, made from settings and ended in order. Reads no
 * environment and handles no signal. One worker is this process; more will be its children.
 */
import manifest from '../package.json' with { type: 'json' };
import { loadInstallation } from '../shared/crypto/installation.ts';
import type { KeyEncryption } from '../shared/crypto/local-key.ts';
import type { Logger } from '../shared/observability/logger.ts';
import { createMetrics } from '../shared/observability/metrics.ts';
import { createPool } from '../shared/postgres/pool.ts';
import { hasCurrentSchema } from '../shared/postgres/schema.ts';
import { closeServer } from '../shared/process/listen.ts';
import { checkReadiness } from '../shared/process/readiness.ts';
import { retryUntilAvailable } from '../shared/process/retry-until-available.ts';
import type { Plane } from '../shared/process/serve-plane.ts';
import { startWorker, type Worker, type WorkerSettings } from './worker.ts';

export interface DataPlaneSettings extends WorkerSettings {
  databaseUrl: string;
  databasePoolMax: number;
  kek: KeyEncryption;
  testClockOffsetSeconds: number | undefined;
}

/** Nothing is opened before `start`. */
export function createDataPlane(settings: DataPlaneSettings, log: Logger): Plane {
  const pool = createPool({
    connectionString: settings.databaseUrl,
    max: settings.databasePoolMax,
    applicationName: 'sallyport-data-plane',
    clockOffsetSeconds: settings.testClockOffsetSeconds,
    log,
  });
  const metrics = createMetrics(manifest, pool);
  let worker: Worker | undefined;
  let draining = false;

  return {
    metrics,
    async start() {
      const load = () => loadInstallation(pool, settings.kek);
      const installation = await retryUntilAvailable(load, log);
      worker = await startWorker({ settings, pool, installation, metrics, log });
      return worker.port;
    },
    readiness: () =>
      checkReadiness({
        draining: () => !draining,
        database: async () => (await pool.query('SELECT 1')).rowCount === 1,
        migrations: () => hasCurrentSchema(pool),
      }),
    async stop() {
      draining = true;
      worker?.drain();
      if (worker !== undefined) await closeServer(worker.server);
      await worker?.close();
      await pool.end();
    },
  };
}
