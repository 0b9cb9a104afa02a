/**
 * Delivers the result of an asynchronous reaction to its callback: until it is acknowledged, refused for
 * good, or has been tried for some hours. A receiver may get it twice, always under the same
 * `webhook-id`; what its caller has lost the right to meanwhile is not sent any more.
 */
import { getReactorResult } from '../../shared/api/reactors.ts';
import { ApiError } from '../../shared/errors.ts';
import type { ClaimedJob } from '../../shared/jobs/job-store.ts';
import type { JobLease, JobWork } from '../../shared/jobs/run-jobs.ts';
import type { CallbackMetrics } from '../../shared/observability/callback-metrics.ts';
import { translateDatabaseError } from '../../shared/postgres/database-error.ts';
import { readWebhookSecrets } from '../../shared/webhooks/webhook-secrets.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { DestinationPools } from '../proxy/pools.ts';
import { serveExchange } from '../serve-exchange.ts';
import type { ReactingServices } from '../services.ts';
import { callbackBody } from './callback-body.ts';
import { DELIVERIES_MAX, retryDelayMs } from './callback-schedule.ts';
import { deliver } from './deliver.ts';
import { type JobContents, openJob } from './job-content.ts';
import { JobExchange } from './job-exchange.ts';
import { requireResultRight } from './result-right.ts';
import { type FoundResult, findResult } from './result-store.ts';

/** Most of them wait for a receiver. */
const CONCURRENCY = 64;

export interface CallbackOptions {
  readonly services: ReactingServices;
  readonly pools: Pick<DestinationPools, 'dispatcher'>;
  readonly metrics: Pick<CallbackMetrics, 'deliveries'>;
  readonly times: CallbackTimes;
}

/** Unless the usual ones. */
export interface CallbackTimes {
  /** Before the first retry; each later one waits twice as long. */
  readonly firstRetryMs?: number;
  /** One delivery in all. */
  readonly deliveryMs?: number;
}

export function createCallbackWork(options: CallbackOptions): JobWork {
  return {
    concurrency: CONCURRENCY,
    run: (job, lease) => runCallback(job, lease, options),
  };
}

async function runCallback(
  job: ClaimedJob,
  lease: JobLease,
  options: CallbackOptions,
): Promise<void> {
  const { services, pools, metrics, times } = options;
  const { pool, dataKeys, gate, log } = services;
  const { tenant_id } = job;
  const callback = await openJob(dataKeys, { ...job, kind: 'callback' }, job.sealed);
  const { request_id, callback_url, trace_id } = callback;
  const named = { trace_id, tenant_id, request_id, attempt: job.attempt };
  const result = await findResult(pool, dataKeys, tenant_id, request_id);
  if (result === undefined) return end('expired');
  const secrets = await readWebhookSecrets(pool, dataKeys, tenant_id);
  const body = callbackBody(await answerOf(result, callback, services));
  const message = { id: request_id, url: callback_url, trace_id, body, secrets };
  const delivery = await deliver(
    pools.dispatcher(tenant_id),
    message,
    lease.signal,
    times.deliveryMs,
  );
  const { outcome } = delivery;
  if (outcome !== 'failed') return end(outcome);
  if (job.attempt >= DELIVERIES_MAX) return end('given_up');
  metrics.deliveries.inc({ outcome });
  const wait_ms = retryDelayMs(job.attempt, delivery.retry_after_ms, times.firstRetryMs);
  if (job.attempt === 1) {
    const { status, reason } = delivery;
    const delay_ms = Math.round(wait_ms);
    log.warn({ ...named, outcome, status, reason, delay_ms }, 'a callback was not acknowledged');
  }
  await lease.retry((await gate.read(tenant_id)).now_ms + wait_ms);

  async function end(outcome: 'delivered' | 'refused' | 'given_up' | 'expired'): Promise<void> {
    metrics.deliveries.inc({ outcome });
    if (outcome !== 'delivered') log.warn({ ...named, outcome }, 'a callback was not delivered');
    await lease.inTransaction(async () => undefined);
  }
}

/** The result if its caller could still be shown it, else why not. */
async function answerOf(
  result: FoundResult,
  callback: JobContents['callback'],
  services: ReactingServices,
): Promise<Answer> {
  const exchange = new JobExchange(result.tenant_id, callback);
  const route = async (_: Exchange, application: CachedApplication): Promise<Answer> => {
    await requireResultRight(result, exchange, application, services);
    return result.answer;
  };
  try {
    return await serveExchange(exchange, { operation: getReactorResult, route }, services);
  } catch (error) {
    const known = translateDatabaseError(error);
    if (!(known instanceof ApiError) || known.code === 'unavailable') throw error;
    return { status: known.status, body: JSON.stringify(known.toProblem()) };
  }
}
