/**
 * The job process: runs due jobs and sweeps away what is due, apart from the request workers. Any number
 * may run, on any machines: a job is leased to one at a time, and sweeps share their rows. Reads no
 * environment and handles no signal.
 */
import manifest from '../package.json' with { type: 'json' };
import { keepAudit } from '../shared/audit/keep-audit.ts';
import { loadInstallation } from '../shared/crypto/installation.ts';
import type { KeyEncryption } from '../shared/crypto/local-key.ts';
import { runJobs } from '../shared/jobs/run-jobs.ts';
import { createJobMetrics } from '../shared/observability/job-metrics.ts';
import type { Logger } from '../shared/observability/logger.ts';
import { createMetrics } from '../shared/observability/metrics.ts';
import { createReactionMetrics } from '../shared/observability/reaction-metrics.ts';
import { createPool } from '../shared/postgres/pool.ts';
import { hasCurrentSchema } from '../shared/postgres/schema.ts';
import { checkReadiness } from '../shared/process/readiness.ts';
import { retryUntilAvailable } from '../shared/process/retry-until-available.ts';
import type { Plane } from '../shared/process/serve-plane.ts';
import { createJobWorks } from './job-works.ts';
import { openServices, type ServiceSettings } from './open-services.ts';
import type { SandboxSettings } from './reactors/sandbox.ts';
import { type SandboxOnDemand, sandboxOnDemand } from './reactors/sandbox-on-demand.ts';
import { runSweeps } from './run-sweeps.ts';

export interface JobProcessSettings extends ServiceSettings, SandboxSettings {
  databaseUrl: string;
  databasePoolMax: number;
  kek: KeyEncryption;
  testClockOffsetSeconds: number | undefined;
  /** How many months of the audit trail are kept besides the current one. */
  auditMonths: number;
}

/** It listens nowhere. */
const NO_PORT = 0;

/** Nothing is opened before `start`. */
export function createJobProcess(settings: JobProcessSettings, log: Logger): Plane {
  const pool = createPool({
    connectionString: settings.databaseUrl,
    max: settings.databasePoolMax,
    applicationName: 'sallyport-jobs',
    clockOffsetSeconds: settings.testClockOffsetSeconds,
    log,
  });
  const metrics = createMetrics(manifest, pool);
  let sandbox: SandboxOnDemand | undefined;
  const reactionMetrics = createReactionMetrics(metrics, () => sandbox?.status()?.hosts ?? 0);
  const stopping = new AbortController();
  const { signal } = stopping;
  /** What runs, in the order it came up; ended last to first. */
  const closers: (() => Promise<void>)[] = [() => pool.end()];

  return {
    metrics,
    async start() {
      sandbox = sandboxOnDemand(settings, reactionMetrics, log);
      const load = () => loadInstallation(pool, settings.kek);
      const installation = await retryUntilAvailable(load, log);
      const connections = { settings, pool, installation, sandbox };
      const open = openServices({ ...connections, metrics, reactionMetrics, log });
      const jobs = runJobs({
        ...{ pool, log, signal, metrics: createJobMetrics(metrics) },
        ...{ works: createJobWorks(open, metrics), directUrl: settings.directUrl },
      });
      const onExpired = (count: number) => open.services.countTransactions('expired', count);
      const sweeps = runSweeps({ pool, metrics, log, signal, onExpired });
      const months = settings.auditMonths;
      const audit = keepAudit({ pool, installation, months, log, signal });
      closers.push(
        async () => sandbox?.close(),
        () => open.close(),
        () => Promise.all([jobs, sweeps, audit]).then(() => undefined),
      );
      return NO_PORT;
    },
    readiness: () =>
      checkReadiness({
        draining: () => !signal.aborted,
        database: async () => (await pool.query('SELECT 1')).rowCount === 1,
        migrations: () => hasCurrentSchema(pool),
      }),
    async stop() {
      stopping.abort();
      for (const close of closers.toReversed()) await close();
    },
  };
}
