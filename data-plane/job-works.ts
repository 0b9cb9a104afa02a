/** What each kind of job does: one line per kind, the work itself beside its subject. */
import type { JobKind } from '../shared/jobs/job-store.ts';
import type { JobWork } from '../shared/jobs/run-jobs.ts';
import { createCallbackMetrics } from '../shared/observability/callback-metrics.ts';
import type { Metrics } from '../shared/observability/metrics.ts';
import type { OpenServices } from './open-services.ts';
import { type CallbackTimes, createCallbackWork } from './reactors/callback.ts';
import { createReactWork } from './reactors/run-async.ts';

/** Where no reactors are run nothing of theirs is claimed either: others may. */
const NONE: JobWork = {
  concurrency: 0,
  run: () => Promise.reject(new Error('no reactors are run here')),
};

/** `times`: unless the usual ones. */
export function createJobWorks(
  { services }: OpenServices,
  metrics: Pick<Metrics, 'registry'>,
  times: CallbackTimes = {},
): Record<JobKind, JobWork> {
  const { reactions, proxying } = services;
  if (reactions === undefined || proxying === undefined) return { react: NONE, callback: NONE };
  const reacting = { ...services, reactions };
  const sending = { services: reacting, pools: proxying.pools, times };
  return {
    react: createReactWork(reacting),
    callback: createCallbackWork({ ...sending, metrics: createCallbackMetrics(metrics) }),
  };
}
