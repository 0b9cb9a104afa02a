/**
 * What a failed query means to a client. Texts of the database are never passed on: they may quote
 * values.
 */
import { ApiError } from '../errors.ts';

/** SQLSTATE classes and codes that say "not now": connection, shutdown, resources, time limits. */
const UNAVAILABLE_CLASSES = new Set(['08', '53', '58']);
const UNAVAILABLE_CODES = new Set([
  '57014', // query_canceled: statement_timeout
  '55P03', // lock_not_available: lock_timeout
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '25006', // read_only_sql_transaction: a standby after failover
  '40001', // serialization_failure
  '40P01', // deadlock_detected
]);
/** Within those classes, what is a fault of ours: a malformed message does not get better. */
const PROTOCOL_VIOLATION = '08P01';
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EMFILE',
]);
/** Errors that node-postgres raises by itself carry no code, only these words. */
const CLIENT_MESSAGES = ['timeout', 'Connection terminated', 'not queryable', 'Client was closed'];

/** Seconds a client should wait before it tries again. */
const RETRY_AFTER_S = '1';

/** A standby cannot read the unlogged table of card verification codes: it is no server for us yet. */
function isReadOnStandby(error: unknown): boolean {
  const { code, routine } = (error ?? {}) as { code?: unknown; routine?: unknown };
  return code === '0A000' && routine === 'get_relation_info';
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** Whether a query failed because the database is away, overloaded or shutting down. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined) {
    if (NETWORK_CODES.has(code) || UNAVAILABLE_CODES.has(code)) return true;
    if (code === PROTOCOL_VIOLATION) return false;
    if (isReadOnStandby(error)) return true;
    return code.length === 5 && UNAVAILABLE_CLASSES.has(code.slice(0, 2));
  }
  if (!(error instanceof Error)) return false;
  return CLIENT_MESSAGES.some((words) => error.message.includes(words));
}

/** The connection was cut under a query; another one may be fine. */
const LOST_CODES = new Set(['57P01', '57P02', 'ECONNRESET', 'EPIPE']);
const LOST_MESSAGE = 'Connection terminated';

/** Runs a read again, once, when its connection was cut: a read has no effect to repeat. */
export async function retryRead<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const isLost =
      LOST_CODES.has(codeOf(error) ?? '') ||
      (error instanceof Error && error.message.startsWith(LOST_MESSAGE));
    if (!isLost) throw error;
    return read();
  }
}

/** Somebody else has what the statement wants, and was waited for, or waits for it in turn. */
const CROSSED_CODES = new Set(['55P03', '40P01']);

/** Whether a statement met another one's locks: alone, or a moment later, it may not. */
export function isCrossed(error: unknown): boolean {
  return CROSSED_CODES.has(codeOf(error) ?? '');
}

/** The same, or the whole time of a statement went by: in one wait after another, perhaps. */
export function isHeldUp(error: unknown): boolean {
  return isCrossed(error) || codeOf(error) === '57014';
}

/** Whether one row of a statement was refused: data exceptions and integrity violations. */
export function isRowError(error: unknown): boolean {
  const code = codeOf(error);
  return code?.length === 5 && (code.startsWith('22') || code.startsWith('23'));
}

/** The 503 of an unreachable database; other errors are returned as they are. */
export function translateDatabaseError(error: unknown): unknown {
  if (error instanceof ApiError || !isDatabaseUnavailable(error)) return error;
  return new ApiError('unavailable', 'The database is not available; try again', {
    headers: { 'retry-after': RETRY_AFTER_S },
    cause: error,
  });
}
