/** What is counted of idempotency keys. */
import { Counter } from 'prom-client';
import type { Metrics } from './metrics.ts';

/** Of requests with a key. `replayed`: answered as the first was; `in_progress`: 409, it is under way. */
export type IdempotencyCounter = Counter<'outcome'>;

export function createIdempotencyCounter({
  registry,
}: Pick<Metrics, 'registry'>): IdempotencyCounter {
  return new Counter({
    name: 'sallyport_idempotent_requests_total',
    help: 'Requests that had no effect since their idempotency key was in use, by how they ended',
    labelNames: ['outcome'],
    registers: [registry],
  });
}
