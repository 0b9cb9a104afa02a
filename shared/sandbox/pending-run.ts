/** A run between its request and its end, as the supervisor keeps it. */
import type { HostProcess } from './host-process.ts';
import type { HostRun } from './host-thread.ts';
import type { RunPurpose, ScriptRun } from './protocol.ts';
import { RunCalls } from './run-calls.ts';
import { deadlineOf, requestText, type ScriptRequest, serviceNames } from './script-request.ts';

export interface PendingRun extends HostRun {
  readonly tenant_id: string;
  readonly script_key: string;
  readonly deadline_ms: number;
  readonly calls: RunCalls;
  settle: (run: ScriptRun) => void;
  /** Where it is now, if anywhere. */
  host: HostProcess | undefined;
  /** It waits for an answer from outside. */
  parked: boolean;
  /** Hosts that were lost with it. */
  losses: number;
}

const NO_SERVICES = {};

/** In no host yet. `onWaiting`: it begins to wait for calls, or waits for none any more. */
export function createPendingRun(
  request: ScriptRequest,
  { id, purpose, ends_at_ms }: { id: number; purpose: RunPurpose; ends_at_ms: number },
  onWaiting: (waits: boolean) => void,
): PendingRun {
  const { tenant_id, source, services = NO_SERVICES, reuse = false, mayKeep } = request;
  const script_key = `${tenant_id}/${request.script_version}`;
  const run: PendingRun = {
    message: {
      kind: 'run',
      id,
      script_key,
      tenant_id,
      purpose,
      ends_at_ms,
      reuse,
      services: serviceNames(services),
    },
    tenant_id,
    script_key,
    deadline_ms: deadlineOf(request),
    source,
    request: requestText(request),
    calls: new RunCalls({
      id,
      services,
      mayKeep,
      onWaiting,
      answer: (message, body) => run.host?.answer(message, body),
    }),
    settle: () => undefined,
    host: undefined,
    parked: false,
    losses: 0,
  };
  return run;
}
