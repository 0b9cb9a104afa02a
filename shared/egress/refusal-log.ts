/** Tells the operator of connections that the guard refused, without where they should have led. */
import type { Logger } from '../observability/logger.ts';
import type { EgressError } from './egress-error.ts';

/** `tenant_id`: whose connection it would have been, where it is one tenant's. */
export type OnRefused = (error: EgressError, tenant_id: string | undefined) => void;

/** One refusal in the log per this time: a script can cause thousands of them a second. */
const LOG_EVERY_MS = 1_000;

/**
 * Logs refusals, at most one line a second, with how many there were since the last one, of whichever
 * tenant. There is no trace id: a connection is opened for all requests that wait for it.
 */
export function createRefusalLog(log: Pick<Logger, 'warn'>): OnRefused {
  let count = 0;
  let quietUntil = 0;
  return ({ code: reason, message }, tenant_id) => {
    count += 1;
    const now = Date.now();
    if (now < quietUntil) return;
    log.warn({ tenant_id, reason, count }, `an outgoing connection was refused: ${message}`);
    count = 0;
    quietUntil = now + LOG_EVERY_MS;
  };
}
