/**
 * The sandbox of this machine: its hosts are started beside everything else, so that tokens are served
 * meanwhile, and a run that comes before they are ready waits for them.
 */
import { availableParallelism } from 'node:os';
import type { Logger } from '../../shared/observability/logger.ts';
import type { ReactionMetrics } from '../../shared/observability/reaction-metrics.ts';
import type { ScriptRun } from '../../shared/sandbox/protocol.ts';
import { type ScriptRequest, Supervisor } from '../../shared/sandbox/supervisor.ts';

export interface SandboxSettings {
  /** Unset: half the cores, at least one. 0: no sandbox, reactors are refused. */
  sandboxHosts: number | undefined;
  /** Of each host. */
  sandboxThreads: number;
  sandboxReuse: 'invocation' | 'reactor';
  sandboxStrict: boolean;
}

export interface SandboxStatus {
  /** `shared` when at least one host could reach the network if its code broke out. */
  readonly network: 'none' | 'shared';
  readonly hosts: number;
}

export interface Sandbox {
  /** Whether a context serves all runs of a reactor version. */
  readonly reuse: boolean;
  /** Settles when the hosts can run scripts; rejects when they cannot. */
  readonly ready: Promise<void>;
  run(request: ScriptRequest): Promise<ScriptRun>;
  /** `undefined` while they start. */
  status(): SandboxStatus | undefined;
  isReady(): boolean;
  close(): Promise<void>;
}

/** `undefined` when there shall be none. */
export function startSandbox(
  settings: SandboxSettings,
  metrics: ReactionMetrics,
  log: Logger,
): Sandbox | undefined {
  const { sandboxHosts = defaultHosts(), sandboxThreads, sandboxReuse, sandboxStrict } = settings;
  const reuse = sandboxReuse === 'reactor';
  if (sandboxHosts === 0) return undefined;
  let supervisor: Supervisor | undefined;
  const starting = Supervisor.start({
    host_count: sandboxHosts,
    thread_count: sandboxThreads,
    strict: sandboxStrict,
    onHostFailed: (err) => log.error({ err }, 'a sandbox host could not be started'),
    onHostLost: (reason, how) => {
      metrics.hostsLost.inc({ reason });
      const end = how === undefined ? reason : `${reason} with ${how}`;
      log.warn(`a sandbox host was lost and is replaced: ${end}`);
    },
  }).then((started) => {
    supervisor = started;
    const { network } = started.status();
    if (network === 'shared') {
      log.warn('sandbox hosts share the network of this machine: there is no namespace for them');
    }
    return started;
  });
  const ready = starting.then(() => undefined);
  // Whoever awaits it is told; that may be later than it fails.
  ready.catch(() => undefined);
  const status = (): SandboxStatus | undefined => {
    if (supervisor === undefined) return undefined;
    const { network, pids } = supervisor.status();
    return { network, hosts: pids.length };
  };
  return {
    reuse,
    ready,
    run: (request) => supervisor?.run(request) ?? starting.then((started) => started.run(request)),
    status,
    isReady: () => (status()?.hosts ?? 0) > 0,
    close: async () => {
      const started = await starting.catch(() => undefined);
      await started?.close();
    },
  };
}

const defaultHosts = (): number => Math.max(1, Math.floor(availableParallelism() / 2));
