/**
 * One data plane: its connections, its sandbox hosts, its worker, made from settings and ended in
 * order. Reads no environment and handles no signal. One worker is this process; more will be its
 * children, and the hosts stay the machine's.
 */
import manifest from '../package.json' with { type: 'json' };
import { loadInstallation } from '../shared/crypto/installation.ts';
import type { KeyEncryption } from '../shared/crypto/local-key.ts';
import type { Logger } from '../shared/observability/logger.ts';
import { createMetrics } from '../shared/observability/metrics.ts';
import { createReactionMetrics } from '../shared/observability/reaction-metrics.ts';
import { createPool } from '../shared/postgres/pool.ts';
import { hasCurrentSchema } from '../shared/postgres/schema.ts';
import { closeServer } from '../shared/process/listen.ts';
import { checkReadiness } from '../shared/process/readiness.ts';
import { retryUntilAvailable } from '../shared/process/retry-until-available.ts';
import type { Plane } from '../shared/process/serve-plane.ts';
import { type Sandbox, type SandboxSettings, startSandbox } from './reactors/sandbox.ts';
import { startWorker, type Worker, type WorkerSettings } from './worker.ts';

export interface DataPlaneSettings extends WorkerSettings, SandboxSettings {
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
  let sandbox: Sandbox | undefined;
  const reactionMetrics = createReactionMetrics(metrics, () => sandbox?.status()?.hosts ?? 0);
  let worker: Worker | undefined;
  let draining = false;

  return {
    metrics,
    async start() {
      const hosts = startSandbox(settings, reactionMetrics, log);
      sandbox = hosts;
      // Without hosts that can be trusted nothing is served, not even for a moment.
      if (settings.sandboxStrict) await hosts?.ready;
      const load = () => loadInstallation(pool, settings.kek);
      const installation = await retryUntilAvailable(load, log);
      const connections = { settings, pool, installation };
      const started = { ...connections, metrics, reactionMetrics, sandbox: hosts, log };
      worker = await startWorker(started);
      // Tokens are served already; the plane is complete when reactors are.
      await hosts?.ready;
      return worker.port;
    },
    readiness: async () => {
      const readiness = await checkReadiness({
        draining: () => !draining,
        database: async () => (await pool.query('SELECT 1')).rowCount === 1,
        migrations: () => hasCurrentSchema(pool),
        sandbox: () => sandbox === undefined || sandbox.isReady(),
      });
      const status = sandbox?.status();
      return status === undefined ? readiness : { ...readiness, sandbox: status };
    },
    async stop() {
      draining = true;
      worker?.drain();
      if (worker !== undefined) await closeServer(worker.server);
      await worker?.close();
      // The last, so that runs in flight end by themselves.
      await sandbox?.close();
      await pool.end();
    },
  };
}
