/** What became of the callbacks of asynchronous reactions. */
import { Counter } from 'prom-client';
import type { Metrics } from './metrics.ts';

export interface CallbackMetrics {
  /** `failed`: to be tried again; `refused`: 410; `expired`: the result was not kept any more. */
  readonly deliveries: Counter<'outcome'>;
}

export function createCallbackMetrics({ registry }: Pick<Metrics, 'registry'>): CallbackMetrics {
  return {
    deliveries: new Counter({
      name: 'sallyport_callback_deliveries_total',
      help: 'Deliveries of callbacks by what became of them',
      labelNames: ['outcome'],
      registers: [registry],
    }),
  };
}
