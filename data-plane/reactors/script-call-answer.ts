/**
 * What a call of a script is answered, as JSON text `{"status", "body"}`: the status and the body that
 * HTTP would have. A failure of ours says no more than it says to a client.
 */
import { ApiError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/observability/logger.ts';
import { translateDatabaseError } from '../../shared/postgres/database-error.ts';
import type { Answer } from '../exchange.ts';

/** The body is spliced in as it is. What a reactor answers under a type of its own need not be JSON. */
export function answerText({ status, body, headers }: Answer): string {
  if (body === undefined) return `{"status":${status}}`;
  const isJson = !headers?.includes('content-type') || isJsonText(body);
  return `{"status":${status},"body":${isJson ? body : JSON.stringify(body)}}`;
}

function isJsonText(body: string): boolean {
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}

/**
 * Any error as the problem details of its status. A fault of ours is logged; an outage is the whole
 * reaction's, which says so when it fails.
 */
export function errorText(error: unknown, trace_id: string, log: Logger): string {
  const translated = translateDatabaseError(error);
  if (translated instanceof ApiError) return problemText(translated);
  log.error({ err: translated, trace_id }, 'a call of a script failed');
  return problemText(
    new ApiError('internal', 'An unexpected error occurred; the trace id finds it in the log'),
  );
}

function problemText(error: ApiError): string {
  return answerText({ status: error.status, body: JSON.stringify(error.toProblem()) });
}
