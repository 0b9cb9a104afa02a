/**
 * The only place of this plane where an error becomes status and body. A client learns what to do
 * and never sees a value; the log gets the cause, reduced to its kind and place.
 */
import type { Next } from 'koa';
import { ApiError } from '../shared/errors.ts';
import { PROBLEM_MEDIA_TYPE } from '../shared/http/media-type.ts';
import { createFailureLog, type FailureLog } from '../shared/observability/failure-log.ts';
import type { Logger } from '../shared/observability/logger.ts';
import { translateDatabaseError } from '../shared/postgres/database-error.ts';
import type { RequestContext } from './request-state.ts';

/** Answers whatever is thrown below with problem details (RFC 9457). */
export function answerErrors({ log }: { log: Logger }) {
  const logFailure = createFailureLog(log);
  return async (ctx: RequestContext, next: Next): Promise<void> => {
    try {
      await next();
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error.status >= 500) tellFailure(logFailure, ctx, error);
      writeError(ctx, error);
    }
  };
}

function toApiError(thrown: unknown): ApiError {
  const error = translateDatabaseError(thrown);
  if (error instanceof ApiError) return error;
  const detail = 'Something failed on our side; report it with the bt-trace-id of this answer';
  return new ApiError('internal', detail, { cause: error });
}

function writeError(ctx: RequestContext, error: ApiError): void {
  ctx.status = error.status;
  ctx.set(error.headers ?? {});
  ctx.type = PROBLEM_MEDIA_TYPE;
  ctx.body = JSON.stringify(error.toProblem());
}

function tellFailure(logFailure: FailureLog, ctx: RequestContext, error: ApiError): void {
  const { traceId, operation, caller } = ctx.state;
  logFailure(error, traceId, {
    method: ctx.method,
    route: operation?.path ?? 'unmatched',
    status: error.status,
    tenant_id: caller?.tenant_id,
    application_id: caller?.application_id,
  });
}
