/**
 * Callers that never pause: each sends its next request as soon as the last was answered, and every
 * answer is kept with the moment its request began.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from './http-call.ts';

export interface Sample {
  /** Milliseconds since the epoch, taken before anything of the request was sent. */
  readonly beganAt: number;
  readonly elapsedMs: number;
  /** 0 when there was no answer; `text` is then the reason. */
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | null;
  readonly line: string;
}

export interface Callers {
  /** Settles when `count` requests have been answered in all. */
  answered(count: number): Promise<void>;
  /** Settles when `count` requests that began after the moment have been answered. */
  answeredSince(moment: number, count: number): Promise<void>;
  /** Settles when, from now on, `count` requests in a row were served (2xx). */
  servedInARow(count: number): Promise<void>;
  /** Settles when, from now on, `count` requests found nobody to answer. */
  unserved(count: number): Promise<void>;
  /** Lets each caller finish its request and answers all samples. */
  stop(): Promise<Sample[]>;
}

/** A request of caller number `caller`; `line` names it in failures. */
export type Attempt = (caller: number) => { line: string; answer: Promise<Answer<unknown>> };

/** Between attempts on an address where nobody listens: they fail at once, and would burn the CPU. */
const REFUSED_PAUSE_MS = 20;

async function take(attempt: Attempt, caller: number): Promise<Sample> {
  const beganAt = Date.now();
  const start = performance.now();
  const { line, answer } = attempt(caller);
  const { status, text, headers } = await answer.catch((error: unknown) => ({
    status: 0,
    text: reasonOf(error),
    headers: new Headers(),
  }));
  const retryAfter = headers.get('retry-after');
  return { beganAt, elapsedMs: performance.now() - start, status, text, retryAfter, line };
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return `${(cause as { code?: unknown }).code ?? ''} ${String(cause)}`;
}

export function startCallers(count: number, attempt: Attempt): Callers {
  const samples: Sample[] = [];
  const waiting = new Set<() => void>();
  let stopped = false;

  async function call(caller: number): Promise<void> {
    while (!stopped) {
      const sample = await take(attempt, caller);
      samples.push(sample);
      for (const check of waiting) check();
      if (sample.status === 0) await delay(REFUSED_PAUSE_MS);
    }
  }
  const callers = Array.from({ length: count }, (_, caller) => call(caller));

  /** Settles once `isEnough` says so of the samples from `index` on, which it sees one by one. */
  function until(index: number, isEnough: (sample: Sample) => boolean): Promise<void> {
    let next = index;
    return new Promise((resolve) => {
      const check = (): void => {
        for (; next < samples.length; next += 1) {
          if (!isEnough(samples[next] as Sample)) continue;
          waiting.delete(check);
          resolve();
          return;
        }
      };
      waiting.add(check);
      check();
    });
  }

  /** The same, when `count` samples have been counted; a `reset` begins anew. */
  function counted(
    wanted: number,
    index: number,
    countOf: (sample: Sample) => 1 | 0 | 'reset',
  ): Promise<void> {
    let seen = 0;
    return until(index, (sample) => {
      const one = countOf(sample);
      seen = one === 'reset' ? 0 : seen + one;
      return seen >= wanted;
    });
  }

  return {
    answered: (wanted) => counted(wanted, 0, () => 1),
    answeredSince: (moment, wanted) =>
      counted(wanted, 0, ({ beganAt }) => (beganAt > moment ? 1 : 0)),
    servedInARow: (wanted) =>
      counted(wanted, samples.length, ({ status }) =>
        status >= 200 && status < 300 ? 1 : 'reset',
      ),
    unserved: (wanted) => counted(wanted, samples.length, ({ status }) => (status === 0 ? 1 : 0)),
    stop: async () => {
      stopped = true;
      await Promise.all(callers);
      return samples;
    },
  };
}
