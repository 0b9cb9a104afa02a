/**
 * The end of a process by signal: the first lets it finish what it does, the second ends it at once.
 * A process that does not finish in time ends anyway, and never hangs.
 */
import type { Logger } from '../observability/logger.ts';
import { hasParent } from './parent-link.ts';

/** Longer than a proxied call may take (25 s), shorter than the 30 s supervisors wait. */
const DRAIN_MS_MAX = 28_000;

/** Who waits in front of it is told how to have the end at once, and that it is one. */
export const SECOND_SIGNAL = 'another Ctrl-C or SIGTERM ends it at once';
export const ENDING_AT_ONCE = 'ending at once';

export interface DrainOptions {
  log: Logger;
  /** Stops accepting, finishes what is in flight, closes connections. Called once. */
  stop: () => Promise<void>;
}

export interface Drain {
  /** True from the first signal on: not ready, and answers end their connections. */
  isDraining(): boolean;
}

/**
 * Handles SIGTERM and SIGINT. With a parent SIGINT is left to it: a terminal sends Ctrl-C to all
 * processes, and the parent's SIGTERM would then look like a second request to end.
 */
export function drainOnSignals({ log, stop }: DrainOptions): Drain {
  let draining = false;

  async function drain(signal: string): Promise<void> {
    const startedAt = performance.now();
    log.info({ signal }, hasParent() ? 'draining' : `draining; ${SECOND_SIGNAL}`);
    const deadline = setTimeout(() => {
      log.warn({}, 'still busy after the time to drain; ending');
      process.exit(0);
    }, DRAIN_MS_MAX);
    try {
      await stop();
      log.info({ duration_ms: Math.round(performance.now() - startedAt) }, 'stopped');
    } catch (error) {
      log.error({ err: error }, 'draining failed');
    }
    clearTimeout(deadline);
    process.exit(0);
  }

  const onSignal = (signal: string): void => {
    if (draining) {
      log.warn({ signal }, ENDING_AT_ONCE);
      process.exit(1);
    }
    draining = true;
    void drain(signal);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', hasParent() ? () => undefined : onSignal);
  return { isDraining: () => draining };
}
