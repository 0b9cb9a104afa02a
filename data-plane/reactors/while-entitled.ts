/**
 * What a running script calls out for, on a right that is asked for again each time: a key that was
 * revoked while the code runs brings nothing more out (design section 1, invariant 4).
 */
import { ApiError, type ErrorCode } from '../../shared/errors.ts';
import { translateDatabaseError } from '../../shared/postgres/database-error.ts';
import { ScriptCallError, type ScriptService } from '../../shared/sandbox/script-services.ts';
import type { CallingRun, Right } from '../exchange.ts';

/** What `Right.current` ends with when there is no right any more. Everything else is an outage. */
const TAKEN_BACK: readonly ErrorCode[] = ['unauthorized', 'forbidden', 'not_found'];

/** A right that stands only as long as that of the run which called, and of all runs above it. */
export function withCallingRun(right: Right, callingRun: CallingRun | undefined): Right {
  if (callingRun === undefined) return right;
  return { current: () => Promise.all([callingRun.right.current(), right.current()]) };
}

/** Throws what the script may read when the right is gone, or cannot be asked for now. */
export async function requireEntitled(right: Right): Promise<void> {
  try {
    await right.current();
  } catch (error) {
    throw asCallError(error);
  }
}

/** The service, if the right still stands when it is called. */
export function whileEntitled(service: ScriptService, right: Right): ScriptService {
  return async (request, signal) => {
    await requireEntitled(right);
    return service(request, signal);
  };
}

function asCallError(error: unknown): unknown {
  const known = translateDatabaseError(error);
  if (!(known instanceof ApiError)) return known;
  if (TAKEN_BACK.includes(known.code)) {
    return new ScriptCallError('The right to run this reactor was taken back.');
  }
  // What the reaction itself is answered when it ends while this lasts.
  return new ScriptCallError('The service is not available; try again.', 'EAGAIN');
}
