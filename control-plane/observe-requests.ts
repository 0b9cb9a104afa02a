/**
 * Measures every request and logs what became of every write, by route template: no path with an id in it, no query,
 * no header reaches a label or a line.
 */
import type { Next } from 'koa';
import type { HttpMetrics } from '../shared/observability/http-metrics.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { RequestContext } from './request-state.ts';

const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

export function observeRequests({ log, http }: { log: Logger; http: HttpMetrics }) {
  return async (ctx: RequestContext, next: Next): Promise<void> => {
    const start = performance.now();
    await next();
    const elapsedMs = performance.now() - start;
    const { caller, operation, traceId, replayed = false } = ctx.state;
    const { method, status } = ctx;
    const route = operation?.path ?? 'unmatched';
    http.observe({ route, method, status }, elapsedMs);
    // Failures of our own are logged where they are answered.
    if (caller === undefined || !WRITES.has(method) || status >= 500) return;
    const { tenant_id, application_id } = caller;
    const duration_ms = Math.round(elapsedMs);
    log.info(
      { method, route, status, tenant_id, application_id, trace_id: traceId, duration_ms },
      messageOf(status, replayed),
    );
  };
}

function messageOf(status: number, replayed: boolean): string {
  if (status >= 400) return 'management write refused';
  return replayed ? 'management write answered again' : 'management write';
}
