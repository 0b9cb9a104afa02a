/** How work that is done later fares: what became of it, and how long it waited past its time. */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from './metrics.ts';

/** `done`: finished, retried or ended; `failed`: threw and is tried again; `lost`: another has it. */
export type JobOutcome = 'done' | 'failed' | 'lost' | 'released';

export interface JobMetrics {
  readonly jobs: Counter<'kind' | 'outcome'>;
  readonly inFlight: Gauge<'kind'>;
  readonly delay: Histogram<'kind'>;
}

/** Seconds. At once when woken, a second when polled, 15 and more when a process died with it. */
const DELAY_BUCKETS_S = [0.05, 0.25, 1, 2.5, 5, 10, 20, 60, 600, 3_600];

export function createJobMetrics({ registry }: Pick<Metrics, 'registry'>): JobMetrics {
  const registers = [registry];
  return {
    jobs: new Counter({
      name: 'sallyport_jobs_total',
      help: 'Claimed jobs by what became of the claim',
      labelNames: ['kind', 'outcome'],
      registers,
    }),
    inFlight: new Gauge({
      name: 'sallyport_jobs_in_flight',
      help: 'Jobs that are being run now',
      labelNames: ['kind'],
      registers,
    }),
    delay: new Histogram({
      name: 'sallyport_job_delay_seconds',
      help: 'How long due jobs waited until they were claimed',
      labelNames: ['kind'],
      buckets: DELAY_BUCKETS_S,
      registers,
    }),
  };
}
