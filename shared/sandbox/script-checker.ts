/**
 * Says whether code is a script, by loading it in a sandbox host of its own: for who saves reactors and
 * never runs them. The host is started at the first question and ended when none comes for a while.
 */
import { randomUUID } from 'node:crypto';
import type { ScriptResult } from './protocol.ts';
import { Supervisor } from './supervisor.ts';

export interface ScriptCheckerOptions {
  /** Refuse to check when the host cannot be cut off from the network. */
  readonly strict: boolean;
  readonly idle_ms?: number;
}

/** `message` says what is wrong with the code and may quote it. `busy`: ask again later. */
export type ScriptCheck =
  | { readonly kind: 'ok' }
  | { readonly kind: 'syntax'; readonly message: string; readonly line: number | undefined }
  | { readonly kind: 'type'; readonly message: string }
  | { readonly kind: 'unknown_module'; readonly module: string }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'busy' };

export interface ScriptChecker {
  /** Loads the code without calling its function. Rejects when no sandbox host can be started. */
  check(source: string): Promise<ScriptCheck>;
  close(): Promise<void>;
}

const IDLE_MS_DEFAULT = 60_000;
/** Loading defines functions; code that computes for longer does its work in the wrong place. */
const LOAD_MS_MAX = 5_000;

const FAILED: Readonly<Record<string, string>> = {
  timeout: `The code does not finish loading within ${LOAD_MS_MAX / 1_000} seconds.`,
  memory: 'The code needs more memory to load than a script may have.',
  crashed: 'The code ends the process that loads it.',
};
const FAILED_OTHERWISE = 'The code cannot be loaded.';

export function createScriptChecker({ strict, idle_ms }: ScriptCheckerOptions): ScriptChecker {
  let starting: Promise<Supervisor> | undefined;
  let idle: NodeJS.Timeout | undefined;
  let checks = 0;

  function supervisor(): Promise<Supervisor> {
    if (starting === undefined) {
      const started = Supervisor.start({ host_count: 1, thread_count: 1, spares: false, strict });
      starting = started;
      // The next question tries again.
      started.catch(() => {
        if (starting === started) starting = undefined;
      });
    }
    return starting;
  }

  async function stop(): Promise<void> {
    clearTimeout(idle);
    const running = starting;
    starting = undefined;
    const started = await running?.catch(() => undefined);
    await started?.close();
  }

  return {
    async check(source) {
      clearTimeout(idle);
      checks += 1;
      try {
        const { result } = await (await supervisor()).check({
          // Every source is one of its own: nothing of it is kept warm for another.
          ...{ tenant_id: 'check', script_version: randomUUID(), source },
          deadline_ms: LOAD_MS_MAX,
        });
        return checkOf(result);
      } finally {
        checks -= 1;
        if (checks === 0) idle = setTimeout(stop, idle_ms ?? IDLE_MS_DEFAULT).unref();
      }
    },
    close: stop,
  };
}

function checkOf(result: ScriptResult): ScriptCheck {
  switch (result.kind) {
    case 'ok':
      return { kind: 'ok' };
    case 'syntax':
    case 'type':
    case 'unknown_module':
      return result;
    case 'busy':
    case 'interrupted':
      return { kind: 'busy' };
    default:
      return { kind: 'failed', message: FAILED[result.kind] ?? FAILED_OTHERWISE };
  }
}
