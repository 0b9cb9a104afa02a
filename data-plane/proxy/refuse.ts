/** The end of a proxied request that got no answer of its destination. */
import { ApiError } from '../../shared/errors.ts';
import { discardBody } from '../../shared/http/read-body.ts';
import type { FailureLog } from '../../shared/observability/failure-log.ts';
import { writeAnswer } from '../answer.ts';
import type { ProxyCall } from '../routes/proxy.ts';
import { ExchangeEnded } from './exchange.ts';
import { asApiError, MovedError, proxyErrorAnswer } from './proxy-error.ts';
import type { ProxyOutcome } from './proxy-outcome.ts';
import { resetConnection } from './response.ts';
import { TransformError } from './transform-failure.ts';

/** Answers with a `proxy_error`, or ends the connection when an answer has begun. */
export async function refuse(
  { req, res, context }: ProxyCall,
  error: unknown,
  logFailure: FailureLog,
): Promise<ProxyOutcome> {
  if (error instanceof ExchangeEnded && error.reason === 'caller_gone') return 'caller_gone';
  const known = asApiError(error);
  if (known === undefined || isOurs(known)) logFailure(known ?? error, context.traceId);
  const apiError = known ?? unexpected();
  if (res.destroyed) return 'caller_gone';
  if (res.headersSent) {
    resetConnection(res);
    return outcomeOf(apiError);
  }
  const close = context.close || !req.complete || apiError.headers?.connection === 'close';
  // Closing with unread bytes makes TCP reset the connection before the answer is read.
  if (close) await discardBody(req);
  writeAnswer(res, proxyErrorAnswer(apiError), { ...context, close });
  return outcomeOf(apiError);
}

/** A fault or an outage of ours: not what a destination did, nor what a script said. */
export function isOurs(error: ApiError): boolean {
  return (
    !(error instanceof TransformError || error instanceof MovedError) &&
    (error.code === 'internal' || error.code === 'unavailable')
  );
}

export function unexpected(): ApiError {
  return new ApiError('internal', 'An unexpected error occurred; the trace id finds it in the log');
}

export function outcomeOf(error: ApiError): ProxyOutcome {
  if (error instanceof TransformError) return 'transform_failed';
  if (error instanceof MovedError) return 'refused';
  if (error.code === 'bad_gateway') return 'destination_failed';
  if (error.code === 'request_timeout') return 'destination_timeout';
  return error.status >= 500 ? 'failed' : 'refused';
}
