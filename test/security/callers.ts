/**
 * Callers that never pause: each sends its next request as soon as the last was answered, and every
 * answer is kept with the moment its request began.
 */
import type { Answer } from '../support/http-call.ts';

export interface Sample {
  /** Milliseconds since the epoch, taken before anything of the request was sent. */
  readonly beganAt: number;
  /** 0 when there was no answer. */
  readonly status: number;
  readonly text: string;
  readonly line: string;
}

export interface Callers {
  /** Settles when `count` requests have been answered in all. */
  answered(count: number): Promise<void>;
  /** Settles when `count` requests that began after the moment have been answered. */
  answeredSince(moment: number, count: number): Promise<void>;
  /** Lets each caller finish its request and answers all samples. */
  stop(): Promise<Sample[]>;
}

/** A request of caller number `caller`; `line` names it in failures. */
export type Attempt = (caller: number) => { line: string; answer: Promise<Answer<unknown>> };

export function startCallers(count: number, attempt: Attempt): Callers {
  const samples: Sample[] = [];
  const waiting = new Set<() => void>();
  let stopped = false;

  async function call(caller: number): Promise<void> {
    while (!stopped) {
      const beganAt = Date.now();
      const { line, answer } = attempt(caller);
      const { status, text } = await answer.catch((error: unknown) => ({
        status: 0,
        text: String(error),
      }));
      samples.push({ beganAt, status, text, line });
      for (const check of waiting) check();
    }
  }
  const callers = Array.from({ length: count }, (_, caller) => call(caller));

  function until(isReached: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!isReached()) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
  }

  return {
    answered: (wanted) => until(() => samples.length >= wanted),
    answeredSince: (moment, wanted) => {
      let seen = 0;
      let index = 0;
      return until(() => {
        for (; index < samples.length; index += 1) {
          if ((samples[index]?.beganAt ?? 0) > moment) seen += 1;
        }
        return seen >= wanted;
      });
    },
    stop: async () => {
      stopped = true;
      await Promise.all(callers);
      return samples;
    },
  };
}
