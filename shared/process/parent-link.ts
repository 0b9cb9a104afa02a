/**
 * The channel from a plane to the process that started it (`npm start`): says which port it listens
 * on, answers for its metrics and readiness, and ends with its parent. A plane that was started by
 * itself has no parent and serves these on its own port.
 */
import type { Registry } from 'prom-client';
import type { Readiness } from '../observability/metrics-server.ts';

export interface ParentLinkOptions {
  registry: Registry;
  readiness: () => Promise<Readiness>;
}

export interface ParentLink {
  /** Tells the parent that this process serves, and where. */
  announce(port: number): void;
}

interface MetricsRequest {
  type: 'metrics';
  id: number;
}

/** Whether another process started this one and keeps a channel to it. */
export function hasParent(): boolean {
  return process.send !== undefined;
}

/** Starts to answer the parent; nothing happens in a process without one. */
export function linkToParent(options: ParentLinkOptions): ParentLink {
  process.on('message', (message: unknown) => {
    if (!isMetricsRequest(message)) return;
    // A report that fails is one that the parent misses: it says so itself.
    report(message, options).catch(() => undefined);
  });
  // Nobody would restart, stop or look after an orphan, and the database may end with its parent.
  process.on('disconnect', () => process.exit(1));
  return { announce: (port) => send({ type: 'ready', port }) };
}

async function report({ id }: MetricsRequest, options: ParentLinkOptions): Promise<void> {
  const [metrics, readiness] = await Promise.all([
    options.registry.getMetricsAsJSON(),
    options.readiness(),
  ]);
  send({ type: 'metrics', id, metrics, ...readiness });
}

/** A channel that closes meanwhile is a parent that ended: `disconnect` follows. */
function send(message: object): void {
  if (process.connected === true) process.send?.(message, undefined, undefined, () => undefined);
}

function isMetricsRequest(message: unknown): message is MetricsRequest {
  const { type, id } = (message ?? {}) as Record<string, unknown>;
  return type === 'metrics' && typeof id === 'number';
}
