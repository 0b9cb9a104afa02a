/** What is counted of proxied requests. Labels are from closed sets: no host, no proxy, no path. */
import { Counter, Histogram } from 'prom-client';
import type { Metrics } from './metrics.ts';

/** Seconds, up to the 25 s that a destination has. */
const DURATION_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25];

export interface ProxyMetrics {
  requests: Counter<'outcome'>;
  destinationDuration: Histogram;
  /** Values that a destination sent back; `place` is headers or body. */
  leaks: Counter<'place'>;
  /** `reason`: too many values, a coding that is not undone, too much to decode. */
  unwatched: Counter<'reason'>;
}

export function createProxyMetrics({ registry }: Pick<Metrics, 'registry'>): ProxyMetrics {
  const registers = [registry];
  return {
    requests: new Counter({
      name: 'sallyport_proxy_requests_total',
      help: 'Requests to /proxy, and of code through proxies, by how they ended',
      labelNames: ['outcome'],
      registers,
    }),
    destinationDuration: new Histogram({
      name: 'sallyport_proxy_destination_duration_seconds',
      help: 'From sending a request to a destination to the head of its answer, or its failure',
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
    leaks: new Counter({
      name: 'sallyport_proxy_leaks_total',
      help: 'Values that a destination sent back after they were brought out for it, by where',
      labelNames: ['place'],
      registers,
    }),
    unwatched: new Counter({
      name: 'sallyport_proxy_unwatched_answers_total',
      help: 'Answers not searched for values that were brought out, or not to their end, by why',
      labelNames: ['reason'],
      registers,
    }),
  };
}
