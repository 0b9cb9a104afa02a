/** Whether a process should get requests, and what hinders it otherwise. */
import type { Readiness } from '../observability/metrics-server.ts';

/** A condition by the word an operator sees when it does not hold, e.g. `database`. */
export type ReadinessChecks = Record<string, () => Promise<boolean> | boolean>;

/** Runs all checks at once; one that throws does not hold. Never rejects. */
export async function checkReadiness(checks: ReadinessChecks): Promise<Readiness> {
  const names = Object.keys(checks);
  const results = await Promise.allSettled(names.map(async (name) => checks[name]?.()));
  const problems = names.filter((_, index) => {
    const result = results[index];
    return result?.status !== 'fulfilled' || result.value !== true;
  });
  return { ready: problems.length === 0, problems };
}
