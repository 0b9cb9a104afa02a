/**
 * The text of a call that came out of a sandbox, checked member by member: whoever wrote it may have
 * been customer code. An id is a member of its own and never becomes part of a path.
 */
import { ScriptCallError } from '../../shared/sandbox/script-services.ts';
import type { ScriptRequest } from './script-exchange.ts';

export interface ScriptCall extends ScriptRequest {
  /** The `operationId` it claims. */
  readonly operation: string;
}

/** Throws what the script may read when the text is not a call of our client. */
export function readScriptCall(text: string): ScriptCall {
  const { operation, id, query = '', body = '' } = membersOf(text);
  if (typeof operation !== 'string' || typeof query !== 'string' || typeof body !== 'string') {
    throw notACall();
  }
  if (id !== undefined && typeof id !== 'string') throw notACall();
  return { operation, id, query, body };
}

/** Own members only: a JSON text can name `__proto__`, which must mean nothing. */
function membersOf(text: string): Partial<Record<keyof ScriptCall, unknown>> {
  try {
    return { ...JSON.parse(text) };
  } catch {
    throw notACall();
  }
}

/** The same for a call that is not understood and for one that is not allowed. */
export function notACall(): ScriptCallError {
  return new ScriptCallError('This call is not available in a reactor.', 'NOT_AVAILABLE');
}
