/**
 * Code waits here for the sandbox that checks it: one at a time, tenants in turn. Two at once would
 * share a thread, and code that never finishes loading would take the time of the one beside it.
 */
import { ApiError } from '../../shared/errors.ts';
import type { ScriptCheck, ScriptChecker } from '../../shared/sandbox/script-checker.ts';

/** Checks of one tenant that wait: more than deployment tools send at once. */
const WAITING_MAX = 16;

export interface CodeChecks {
  /** Throws 429 when too many of the tenant wait already; rejects when there is no sandbox. */
  check(tenantId: string, code: string): Promise<ScriptCheck>;
}

export function createCodeChecks(checker: Pick<ScriptChecker, 'check'>): CodeChecks {
  /** Who waits, by tenant; the tenant whose turn is next comes first. */
  const waiting = new Map<string, (() => void)[]>();
  let isChecking = false;

  function wait(tenantId: string): Promise<void> {
    const queue = waiting.get(tenantId) ?? [];
    if (queue.length >= WAITING_MAX) throw tooMany();
    waiting.set(tenantId, queue);
    return new Promise((resolve) => queue.push(resolve));
  }

  /** Hands the turn on; who had it is the last to have it again. It stays taken until nobody waits. */
  function passOn(tenantId: string): void {
    const own = waiting.get(tenantId);
    waiting.delete(tenantId);
    if (own !== undefined) waiting.set(tenantId, own);
    const [first] = waiting;
    isChecking = first !== undefined;
    if (first === undefined) return;
    const [next, queue] = first;
    const start = queue.shift();
    if (queue.length === 0) waiting.delete(next);
    start?.();
  }

  return {
    async check(tenantId, code) {
      if (isChecking) await wait(tenantId);
      isChecking = true;
      try {
        return await checker.check(code);
      } finally {
        passOn(tenantId);
      }
    },
  };
}

function tooMany(): ApiError {
  return new ApiError('too_many_requests', 'Too much code of this tenant waits to be checked', {
    headers: { 'retry-after': '5' },
  });
}
