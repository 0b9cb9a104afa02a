/** How a plane measures its requests: cheap enough for every one of them, bounded in its labels. */
import { isServedMethod } from '../http/methods.ts';
import type { Metrics } from './metrics.ts';

export interface MeasuredRequest {
  /** The operation's path template, or `unmatched`. */
  route: string;
  method: string;
  status: number;
}

export interface HttpMetrics {
  observe(request: MeasuredRequest, elapsedMs: number): void;
}

type Observer = (seconds: number) => void;

/** Label lookups are made once per (method, route, status class): they cost more than the count. */
export function createHttpMetrics(
  { httpRequestDuration }: Pick<Metrics, 'httpRequestDuration'>,
  plane: 'control' | 'data',
): HttpMetrics {
  const observers = new Map<string, Observer>();

  function observerOf(route: string, method: string, statusClass: number): Observer {
    const key = `${method} ${statusClass} ${route}`;
    const known = observers.get(key);
    if (known !== undefined) return known;
    const labels = { plane, route, method, status_class: `${statusClass}xx` };
    const child = httpRequestDuration.labels(labels);
    const observer: Observer = (seconds) => child.observe(seconds);
    observers.set(key, observer);
    return observer;
  }

  return {
    observe({ route, method, status }, elapsedMs) {
      const label = isServedMethod(method) ? method : 'other';
      observerOf(route, label, Math.floor(status / 100))(elapsedMs / 1000);
    },
  };
}
