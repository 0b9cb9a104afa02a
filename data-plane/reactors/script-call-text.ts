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

/** What a call says; nothing of it is checked yet. */
export type CallMembers = Readonly<Record<string, unknown>>;

/** Throws what the script may read when the members are not a call of our client. */
export function readScriptCall(members: CallMembers): ScriptCall {
  const { operation, id, query = '', body = '' } = members;
  if (typeof operation !== 'string' || typeof query !== 'string' || typeof body !== 'string') {
    throw notACall();
  }
  if (id !== undefined && typeof id !== 'string') throw notACall();
  return { operation, id, query, body };
}

/** A request to a proxy as the script wants it sent. */
export interface ScriptProxyCall {
  readonly method: string;
  /** Empty, or behind `/proxy` as it is. */
  readonly path: string;
  readonly query: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** Throws the same for members that are not a call of a proxy. */
export function readProxyCall(members: CallMembers): ScriptProxyCall {
  const { method, path, query, headers, body, base64 } = members;
  if (typeof method !== 'string' || typeof path !== 'string' || typeof query !== 'string') {
    throw notACall();
  }
  if (!Array.isArray(headers) || !headers.every((part) => typeof part === 'string')) {
    throw notACall();
  }
  const [text, coding] = base64 === undefined ? [body ?? '', 'utf8'] : [base64, 'base64'];
  if (headers.length % 2 !== 0 || typeof text !== 'string') throw notACall();
  return { method, path, query, headers, body: Buffer.from(text, coding as BufferEncoding) };
}

/** Own members only: a JSON text can name `__proto__`, which must mean nothing. */
export function readMembers(text: string): CallMembers {
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
