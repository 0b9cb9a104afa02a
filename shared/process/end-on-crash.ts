/** An error that nobody caught ends the process, and is logged without what it might quote. */
import type { Logger } from '../observability/logger.ts';
import { leaveNoCore } from './leave-no-core.ts';

/** Node's own report prints message and source line, which may hold values; this replaces it. */
export function endOnCrash(log: Logger): void {
  leaveNoCore();
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'ended by an unexpected error');
    process.exit(1);
  });
}

/** One line for the terminal: a stack would show where, but never what to do. */
export function endOnFailedStart(name: string): (error: unknown) => never {
  return (error) => {
    const reason = error instanceof Error ? error.message : 'an unknown error';
    process.stderr.write(`sallyport ${name}: ${reason}\n`);
    process.exit(1);
  };
}
