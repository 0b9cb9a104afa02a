/** Callers that write and read tokens of an installation while something is broken. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type Callers, type Sample, startCallers } from '../support/callers.ts';
import { type Answer, call } from '../support/http-call.ts';
import type { Installation } from './installation.ts';

export const CALLERS = 8;
/** Enough that every caller is in the middle of something. */
export const WARM_ANSWERS = 100;
/** A service that is up again answers this many in a row. */
export const RECOVERED_ANSWERS = 100;
/** Long enough for a machine that is busy with other things. */
const PATIENCE_MS = 30_000;
/** The limits of one request add up to less; a hang would be far more. */
const ANSWER_MS_MAX = 10_000;

/** With the key of an application that may create and read. */
export class TokenLoad {
  /** Acknowledged tokens: id → data. */
  readonly acknowledged = new Map<string, string>();
  readonly #installation: Installation;
  readonly #key: string;
  #sequence = 0;

  constructor(installation: Installation, key: string) {
    this.#installation = installation;
    this.#key = key;
  }

  async write(id: string): Promise<Answer<unknown>> {
    const json = { id, type: 'token', data: `data of ${id}` };
    const answer = await this.#call('POST /tokens', json);
    if (answer.status === 201) this.acknowledged.set(id, json.data);
    return answer;
  }

  /** A read of an acknowledged token; a wrong answer is told apart by its text. */
  async read(id: string): Promise<Answer<unknown>> {
    const answer = await this.#call(`GET /tokens/${id}`);
    const isRight = answer.body.data === this.acknowledged.get(id);
    return answer.status !== 200 || isRight ? answer : { ...answer, status: -1 };
  }

  #call(line: string, json?: unknown) {
    const key = this.#key;
    return call(this.#installation.baseUrl(), line, json === undefined ? { key } : { key, json });
  }

  start(): Callers {
    return startCallers(CALLERS, (caller) => {
      this.#sequence += 1;
      const number = this.#sequence;
      if (caller % 2 === 0) return { line: 'POST /tokens', answer: this.write(`token-${number}`) };
      const ids = [...this.acknowledged.keys()];
      return { line: 'GET /tokens/{id}', answer: this.read(ids[number % ids.length] ?? '') };
    });
  }

  /** Breaks something in the middle of the load and waits until all callers are served again. */
  async breakIt(fault: () => Promise<void>): Promise<Sample[]> {
    const callers = this.start();
    try {
      await within('warm', callers.answered(WARM_ANSWERS));
      await fault();
      await within('recovered', callers.servedInARow(RECOVERED_ANSWERS));
    } finally {
      await callers.stop();
    }
    return callers.stop();
  }

  async expectAllThere(): Promise<void> {
    const ids = [...this.acknowledged.keys()];
    while (ids.length > 0) {
      const answers = await Promise.all(ids.splice(0, 64).map((id) => this.read(id)));
      expect(answers.map(({ status }) => status)).to.satisfy((all: number[]) =>
        all.every((status) => status === 200),
      );
    }
  }
}

/** Only 201, 200 and what the fault may cause; a 503 tells when to come back. */
export function expectOnly(samples: readonly Sample[], faulty: readonly number[]): void {
  const odd = samples.filter(({ status }) => ![200, 201, ...faulty].includes(status));
  expect(odd.slice(0, 3)).to.deep.equal([]);
  const refused = samples.filter(({ status }) => status === 503);
  expect(refused.filter(({ retryAfter }) => retryAfter === null)).to.deep.equal([]);
  expect(samples.filter(({ elapsedMs }) => elapsedMs > ANSWER_MS_MAX)).to.deep.equal([]);
}

/** Settles with `work`, and throws when that takes too long. */
export async function within<T>(what: string, work: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = delay(PATIENCE_MS, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`${what}: not within ${PATIENCE_MS} ms`);
  });
  late.catch(() => undefined);
  return Promise.race([work, late]).finally(() => timer.abort());
}

/** Settles with the first true answer. */
export async function until(isReached: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isReached())) {
    if (performance.now() > deadline) throw new Error('not reached in time');
    await delay(1);
  }
}
