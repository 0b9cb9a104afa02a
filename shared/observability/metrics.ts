/**
 * The table of metrics: every name, label and bucket of Sallyport. Labels are from closed sets; no
 * tenant, id or path that a client chose may become one.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { droppedLines } from './logger.ts';

/** Seconds. Fine where a hot read lies (1-10 ms), up to the 25 s a proxied call may take. */
const DURATION_BUCKETS_S = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30,
];

export type HttpLabel = 'plane' | 'route' | 'method' | 'status_class';

export interface Metrics {
  readonly registry: Registry;
  readonly httpRequestDuration: Histogram<HttpLabel>;
}

export interface BuildInfo {
  version: string;
}

/** The connections of a pool, as node-postgres counts them. */
interface CountedPool {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

/** The metrics of one process, in a registry of their own. */
export function createMetrics(build: BuildInfo, pool: CountedPool): Metrics {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: 'sallyport_build_info',
    help: 'Always 1; the labels say what is running',
    labelNames: ['version', 'node_version'],
    aggregator: 'first',
    registers,
  }).set({ version: build.version, node_version: process.version }, 1);
  new Gauge({
    name: 'sallyport_pool_connections',
    help: 'Database connections in use and idle, and requests waiting for one',
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'busy' }, pool.totalCount - pool.idleCount);
      this.set({ state: 'idle' }, pool.idleCount);
      this.set({ state: 'waiting' }, pool.waitingCount);
    },
  });
  const httpRequestDuration = new Histogram<HttpLabel>({
    name: 'sallyport_http_request_duration_seconds',
    help: 'Requests by route template, from the parsed head to the answer',
    labelNames: ['plane', 'route', 'method', 'status_class'],
    buckets: DURATION_BUCKETS_S,
    registers,
  });
  return { registry, httpRequestDuration };
}

/** Adds CPU, memory, garbage collection and event-loop delay of this process. Once per process. */
export function addProcessMetrics({ registry }: Pick<Metrics, 'registry'>): void {
  collectDefaultMetrics({ register: registry });
  const lines = new Counter({
    name: 'sallyport_log_lines_dropped_total',
    help: 'Lines that could not be written to the log',
    registers: [registry],
    collect: () => {
      lines.reset();
      lines.inc(droppedLines());
    },
  });
}
