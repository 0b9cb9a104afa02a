/**
 * A sandbox for a process that mostly needs none: its hosts are started by the first run and ended when
 * there was none for a while.
 */
import type { Logger } from '../../shared/observability/logger.ts';
import type { ReactionMetrics } from '../../shared/observability/reaction-metrics.ts';
import { findIsolation } from '../../shared/sandbox/host-command.ts';
import type { ScriptRun } from '../../shared/sandbox/protocol.ts';
import { type Sandbox, type SandboxSettings, startSandbox } from './sandbox.ts';

/** Two hosts take some 220 MB; starting them takes half a second. */
const IDLE_MS_DEFAULT = 60_000;

const NO_ROOM: ScriptRun = { result: { kind: 'busy', scope: 'machine' }, console: [] };

export type SandboxOnDemand = Pick<Sandbox, 'run' | 'reuse' | 'status' | 'close'>;

/** `undefined` when there shall be none, or none can be as it shall be; the log says so. */
export function sandboxOnDemand(
  settings: SandboxSettings,
  metrics: ReactionMetrics,
  log: Logger,
  idle_ms = IDLE_MS_DEFAULT,
): SandboxOnDemand | undefined {
  const hindrance = hindranceOf(settings);
  if (hindrance !== undefined) {
    log.warn(`no asynchronous reactors and callbacks are run here: ${hindrance}`);
    return undefined;
  }
  let sandbox: Sandbox | undefined;
  let idle: NodeJS.Timeout | undefined;
  let runs = 0;

  /** `undefined` when its hosts cannot be started now: the next run tries again. */
  async function started(): Promise<Sandbox | undefined> {
    sandbox ??= startSandbox(settings, metrics, log);
    const starting = sandbox;
    try {
      await starting?.ready;
      return starting;
    } catch (error) {
      // Told once, however many wait for it.
      if (sandbox === starting) {
        sandbox = undefined;
        log.error({ err: error }, 'the sandbox of the job process could not be started');
      }
      return undefined;
    }
  }

  async function close(): Promise<void> {
    clearTimeout(idle);
    const closing = sandbox;
    sandbox = undefined;
    await closing?.close();
  }

  return {
    reuse: settings.sandboxReuse === 'reactor',
    async run(request) {
      clearTimeout(idle);
      runs += 1;
      try {
        const running = await started();
        // Nothing was run, so it may be run later.
        return (await running?.run(request)) ?? NO_ROOM;
      } finally {
        runs -= 1;
        if (runs === 0) idle = setTimeout(() => void close(), idle_ms).unref();
      }
    },
    status: () => sandbox?.status(),
    close,
  };
}

function hindranceOf({ sandboxHosts, sandboxStrict }: SandboxSettings): string | undefined {
  if (sandboxHosts === 0) return 'SANDBOX_HOSTS is 0';
  if (!sandboxStrict || findIsolation().network === 'none') return undefined;
  return 'SALLYPORT_SANDBOX_STRICT is set, and this system cannot cut hosts off from the network';
}
