/**
 * What the operator is told of single proxies: that their requests fail, and what the tripwire saw. One line a
 * second for each proxy and kind, with how many it stands for: a destination can bring about thousands.
 */
import { EgressError } from '../../shared/egress/egress-error.ts';
import type { Logger } from '../../shared/observability/logger.ts';
import { onceASecondEach } from '../../shared/observability/once-a-second.ts';
import type { CachedProxy } from '../config-cache/proxy-cache.ts';
import type { ProxyOutcome } from './proxy-outcome.ts';
import { TransformError } from './transform-failure.ts';

type Concerned = Pick<CachedProxy, 'tenant_id' | 'proxy_id' | 'slot'>;

export interface ProxyLog {
  /** `error`: what it failed with, where it was not only cut off. */
  failed(proxy: Concerned, trace_id: string, outcome: ProxyOutcome, error?: unknown): void;
  /** A leak is told without the value: that there was one is what the operator must know. */
  leaked(proxy: Concerned, trace_id: string, place: string, count: number): void;
  unwatched(proxy: Concerned, trace_id: string, reason: string): void;
}

interface Line {
  readonly fields: Readonly<Record<'tenant_id' | 'proxy_id' | 'trace_id', string | undefined>>;
  readonly word: { outcome?: ProxyOutcome; place?: string; reason?: string | undefined };
  readonly status?: number | undefined;
  readonly text: string;
}

/** Of callers, of scripts that chose to refuse, and faults of ours, which have lines of their own: none of these. */
const FAILURES: ReadonlySet<ProxyOutcome> = new Set([
  'transform_failed',
  'destination_failed',
  'destination_timeout',
  'destination_reset',
]);
/** Of errors of the system, of TLS, of parsers. Anything else may hold what somebody sent. */
const CODE = /^[A-Z][A-Z0-9_]{2,60}$/;

export function createProxyLog(log: Pick<Logger, 'warn'>): ProxyLog {
  const write = onceASecondEach<Line>(
    ({ fields: { tenant_id, proxy_id }, word, text }) =>
      JSON.stringify([tenant_id, proxy_id, word.outcome ?? word.place ?? word.reason, text]),
    ({ fields, word, status, text }, count) =>
      log.warn({ ...fields, ...word, status, count }, text),
  );
  return {
    failed(proxy, trace_id, outcome, error) {
      if (!FAILURES.has(outcome)) return;
      const status = error instanceof TransformError ? error.status : undefined;
      // A script that answers 4xx has refused its caller: that is what it is there for.
      if (status !== undefined && status < 500) return;
      const fields = fieldsOf(proxy, trace_id);
      const word = { outcome, reason: reasonOf(error) };
      write({ fields, word, status, text: 'a proxied request failed' });
    },
    leaked(proxy, trace_id, place, count) {
      const text = 'a destination sent back values that were brought out for it';
      write({ fields: fieldsOf(proxy, trace_id), word: { place }, text }, count);
    },
    unwatched(proxy, trace_id, reason) {
      const text =
        'an answer was not searched for values that were brought out for it, or not to its end';
      write({ fields: fieldsOf(proxy, trace_id), word: { reason }, text });
    },
  };
}

/** A proxy that is stored nowhere has an id that nobody knows. */
function fieldsOf({ tenant_id, proxy_id, slot }: Concerned, trace_id: string): Line['fields'] {
  return { tenant_id, proxy_id: slot === '' ? undefined : proxy_id, trace_id };
}

/** The innermost code that says why no answer came. */
function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error instanceof TransformError) return undefined;
  if (error instanceof EgressError) return error.detail ?? error.code;
  const code: unknown = Reflect.get(error, 'code');
  const inner = reasonOf(error.cause);
  return inner ?? (typeof code === 'string' && CODE.test(code) ? code : undefined);
}
