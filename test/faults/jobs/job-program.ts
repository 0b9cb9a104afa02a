/**
 * A job process for tests: the real loop and the real store, with works that leave a row for everything
 * they do. `JOB_EFFECTS` counts what became of jobs, `JOB_RUNS` is written outside of any transaction,
 * as a call to somebody else's server would be.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ClaimedJob } from '../../../shared/jobs/job-store.ts';
import { type JobLease, type JobWork, runJobs } from '../../../shared/jobs/run-jobs.ts';
import { createJobMetrics } from '../../../shared/observability/job-metrics.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createMetrics } from '../../../shared/observability/metrics.ts';
import { createPool, type Pool } from '../../../shared/postgres/pool.ts';
import { drainOnSignals } from '../../../shared/process/drain.ts';

const {
  DATABASE_URL = '',
  JOB_MS = '5',
  JOB_CONCURRENCY = '32',
  JOB_DRAIN_MS = '5000',
  LOG_LEVEL = 'warn',
} = process.env;

/** At most once: what was begun and not finished ends as interrupted. */
function once(pool: Pool): JobWork {
  return {
    concurrency: Number(JOB_CONCURRENCY),
    async run(job, lease) {
      if (job.started) return end(job, lease, 'interrupted');
      if (!(await lease.begin())) return;
      await ran(pool, job);
      await delay(Number(JOB_MS), undefined, { signal: lease.signal });
      await end(job, lease, 'result');
    },
  };
}

/** At least once: run again until its end is committed. Deaf to being told to end. */
function repeated(pool: Pool): JobWork {
  return {
    concurrency: Number(JOB_CONCURRENCY),
    async run(job, lease) {
      await ran(pool, job);
      await delay(Number(JOB_MS));
      await end(job, lease, 'result');
    },
  };
}

async function ran(pool: Pool, { id }: ClaimedJob): Promise<void> {
  await pool.query('INSERT INTO job_runs (job_id, pid) VALUES ($1, $2)', [id, process.pid]);
}

async function end({ id, kind }: ClaimedJob, lease: JobLease, outcome: string): Promise<void> {
  await lease.inTransaction(async (client) => {
    await client.query('INSERT INTO job_effects (job_id, kind, outcome) VALUES ($1, $2, $3)', [
      ...[id, kind, outcome],
    ]);
  });
}

const log = createLogger('jobs', LOG_LEVEL as 'warn');
const pool = createPool({
  ...{ connectionString: DATABASE_URL, max: 6, applicationName: 'test-jobs', log },
});
const stopping = new AbortController();
const running = runJobs({
  ...{ pool, log, signal: stopping.signal, directUrl: DATABASE_URL },
  metrics: createJobMetrics(createMetrics({ version: 'test' }, pool)),
  works: { react: once(pool), callback: repeated(pool) },
  drain_ms: Number(JOB_DRAIN_MS),
});
drainOnSignals({
  log,
  stop: async () => {
    stopping.abort();
    await running;
    await pool.end();
  },
});
process.stdout.write('running\n');
