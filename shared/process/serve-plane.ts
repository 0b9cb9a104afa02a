/**
 * A plane as a process: linked to the parent that started it, or by itself with an operators' listener
 * of its own; drained by signals.
 */
import type { Logger } from '../observability/logger.ts';
import { addProcessMetrics, type Metrics } from '../observability/metrics.ts';
import { type Readiness, startMetricsServer } from '../observability/metrics-server.ts';
import { drainOnSignals } from './drain.ts';
import { hasParent, linkToParent } from './parent-link.ts';

export interface Plane {
  readonly metrics: Metrics;
  readiness(): Promise<Readiness>;
  /** Waits for the database, then listens; settles with the port. */
  start(): Promise<number>;
  /** Not ready from here on. Finishes what is in flight and closes every connection. */
  stop(): Promise<void>;
}

export interface ServeOptions {
  log: Logger;
  /** Of the operators' listener; a parent has its own. */
  metricsPort: number;
  /** Its address; unset: all interfaces. */
  metricsHost: string | undefined;
  /** What a plane that was started by itself does before it starts. */
  prepareAlone?: () => Promise<void>;
}

/** Settles when the plane serves. Throws when it cannot start; a signal meanwhile is no failure. */
export async function servePlane(plane: Plane, options: ServeOptions): Promise<void> {
  addProcessMetrics(plane.metrics);
  const drain = drainOnSignals({ log: options.log, stop: plane.stop });
  const serving = hasParent() ? serveWithParent(plane) : serveAlone(plane, options);
  await serving.catch((error: unknown) => {
    if (!drain.isDraining()) throw error;
  });
}

/** The link comes first: a parent that dies meanwhile takes this process with it. */
async function serveWithParent(plane: Plane): Promise<void> {
  const { registry } = plane.metrics;
  const parent = linkToParent({ registry, readiness: plane.readiness });
  parent.announce(await plane.start());
}

async function serveAlone(
  plane: Plane,
  { log, metricsPort, metricsHost, prepareAlone }: ServeOptions,
): Promise<void> {
  const { registry } = plane.metrics;
  const operators = await startMetricsServer({
    port: metricsPort,
    host: metricsHost,
    collect: () => registry.metrics(),
    readiness: plane.readiness,
  });
  log.info({ port: operators.port }, 'metrics are served');
  await prepareAlone?.();
  log.info({ port: await plane.start() }, 'ready');
}
