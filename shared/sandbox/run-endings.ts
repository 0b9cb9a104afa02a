/** How runs end that no host has answered, and which ends speak for a script. */
import type { LossReason } from './host-process.ts';
import type { ScriptResult, ScriptRun } from './protocol.ts';

/** Its host was lost when it might have acted on the outside already. */
export const INTERRUPTED: ScriptRun = { result: { kind: 'interrupted' }, console: [] };

export function busy(scope: 'tenant' | 'machine'): ScriptRun {
  return { result: { kind: 'busy', scope }, console: [] };
}

/** Of a script that its host was lost by, and that had `deadline_ms`. */
export function lossOf(reason: LossReason, deadline_ms: number): ScriptRun {
  const result: ScriptResult =
    reason === 'deadline'
      ? { kind: 'timeout', limit: 'run', limit_ms: deadline_ms }
      : { kind: reason === 'memory' ? 'memory' : 'crashed' };
  return { result, console: [] };
}

/** Ends that do not speak for a script: what it did to its host, or that it never ran. */
const NOT_GOOD: readonly ScriptResult['kind'][] = [
  ...(['crashed', 'interrupted', 'memory', 'timeout', 'busy'] as const),
];

export const isGood = ({ result }: ScriptRun): boolean => !NOT_GOOD.includes(result.kind);
