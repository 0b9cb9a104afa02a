/** Waiting for a database that is not there yet: no crash loop, and no storm when it comes back. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../observability/logger.ts';
import { isDatabaseUnavailable } from '../postgres/database-error.ts';

/** Short enough to be ready within 2 s of the database. */
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 1_000;

/** Runs `work` until the database answers it. Throws every other error at once. */
export async function retryUntilAvailable<T>(work: () => Promise<T>, log: Logger): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      const backoff = Math.min(DELAY_MS_MIN * 2 ** attempt, DELAY_MS_MAX);
      const delay_ms = Math.round(backoff * (0.5 + Math.random() / 2));
      log.warn({ err: error, attempt, delay_ms }, 'the database is not available yet');
      await delay(delay_ms);
    }
  }
}
