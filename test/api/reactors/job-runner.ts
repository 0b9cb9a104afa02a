/** A job process of a test, inside the test's own: what it runs can be held, cut off and timed. */
import { readEnvironment } from '../../../config/environment.ts';
import { requiredSettings } from '../../../config/required-settings.ts';
import { createJobWorks } from '../../../data-plane/job-works.ts';
import { openServices } from '../../../data-plane/open-services.ts';
import type { CallbackTimes } from '../../../data-plane/reactors/callback.ts';
import { startSandbox } from '../../../data-plane/reactors/sandbox.ts';
import type { JobKind } from '../../../shared/jobs/job-store.ts';
import { type JobWork, runJobs } from '../../../shared/jobs/run-jobs.ts';
import { createJobMetrics } from '../../../shared/observability/job-metrics.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createMetrics } from '../../../shared/observability/metrics.ts';
import { createReactionMetrics } from '../../../shared/observability/reaction-metrics.ts';
import { createPool } from '../../../shared/postgres/pool.ts';
import type { Reactors } from './reactors.ts';

export interface JobRunnerOptions {
  times?: CallbackTimes;
  /** Environment variables of the process. */
  settings?: NodeJS.ProcessEnv;
  /** Gets the arguments of each warning. */
  onWarning?: (...line: unknown[]) => unknown;
  /** Changes what jobs do. */
  works?: (works: Record<JobKind, JobWork>) => Record<JobKind, JobWork>;
}

export interface JobRunner {
  /** In Prometheus' text format. */
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

export async function startJobRunner(
  { control }: Pick<Reactors, 'control'>,
  { times, settings = {}, onWarning, works = (all) => all }: JobRunnerOptions = {},
): Promise<JobRunner> {
  const { connectionString, kek } = control.database;
  const environment = readEnvironment({
    NODE_ENV: 'test',
    DATABASE_URL: connectionString,
    SALLYPORT_KEK: kek,
    SANDBOX_HOSTS: '1',
    SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8,::1/128',
    ...settings,
  });
  const all = { ...environment, ...requiredSettings(environment) };
  const silent = createLogger('test', 'silent');
  const log = { ...silent, ...(onWarning === undefined ? {} : { warn: onWarning }) };
  const pool = createPool({
    ...{ connectionString, max: 6, applicationName: 'test-jobs', log },
    clockOffsetSeconds: environment.testClockOffsetSeconds,
  });
  const metrics = createMetrics({ version: 'test' }, pool);
  const reactionMetrics = createReactionMetrics(metrics, () => 1);
  const sandbox = startSandbox(all, reactionMetrics, log);
  const { installation } = control;
  const connections = { settings: all, pool, installation, sandbox };
  const open = openServices({ ...connections, metrics, reactionMetrics, log });
  const stopping = new AbortController();
  const running = runJobs({
    ...{ pool, log, signal: stopping.signal, metrics: createJobMetrics(metrics) },
    ...{ works: works(createJobWorks(open, metrics, times)), directUrl: all.directUrl },
    drain_ms: 2_000,
  });
  return {
    metrics: () => metrics.registry.metrics(),
    async stop() {
      stopping.abort();
      await running;
      await open.close();
      await sandbox?.close();
      await pool.end();
    },
  };
}
