/** The head of a destination's answer: waited for, measured, and watched by the tripwire. */
import type { ProxyingServices } from '../services.ts';
import type { ProxyCaller } from './caller.ts';
import type { DestinationAnswer, Exchange } from './exchange.ts';
import { destinationError } from './proxy-error.ts';
import { watchAnswer } from './watched-answer.ts';

/** Facts 2.3: nothing but success is transformed, and there must be something to transform. */
export function isTransformed({ status }: DestinationAnswer, method: string): boolean {
  return status >= 200 && status <= 299 && method !== 'HEAD';
}

/**
 * Throws what a caller may know of an exchange that failed. From here on the body must be taken or
 * aborted. A leak is told without the value: that there was one is what the operator must know.
 */
export async function watchedAnswer(
  exchange: Exchange,
  secrets: readonly string[],
  { proxy: { proxy_id, tenant_id, leak_tripwire } }: ProxyCaller,
  trace_id: string,
  { log, proxying: { metrics } }: ProxyingServices,
): Promise<DestinationAnswer> {
  const answer = await headOf(exchange, metrics);
  return watchAnswer(answer, secrets, leak_tripwire, (place, count) => {
    metrics.leaks.inc({ place }, count);
    log.warn(
      { trace_id, tenant_id, proxy_id, place, count },
      'a destination sent back values that were brought out for it',
    );
  });
}

async function headOf(
  { answer }: Exchange,
  { destinationDuration }: ProxyingServices['proxying']['metrics'],
): Promise<DestinationAnswer> {
  const startedAt = performance.now();
  try {
    return await answer;
  } catch (error) {
    throw destinationError(error);
  } finally {
    destinationDuration.observe((performance.now() - startedAt) / 1000);
  }
}
