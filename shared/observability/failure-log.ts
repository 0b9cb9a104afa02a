/** Logs why requests failed on our side, in both planes alike. */
import { ApiError } from '../errors.ts';
import type { Logger } from './logger.ts';
import { onceASecond } from './once-a-second.ts';

/** What is known of a request besides its trace id; of an outage, which all share, it says nothing. */
interface FailedRequest {
  method: string;
  route: string;
  status: number;
  tenant_id?: string | undefined;
  application_id?: string | undefined;
}

export type FailureLog = (error: unknown, traceId: string, request?: FailedRequest) => void;

/** A fault of ours is logged each time; an outage, which all requests share, once a second. */
export function createFailureLog(log: Pick<Logger, 'error'>): FailureLog {
  const logOutage = onceASecond<{ error: ApiError; trace_id: string }>(
    ({ error, trace_id }, count) =>
      log.error({ err: error.cause ?? error, trace_id, count }, 'requests answered 503'),
  );
  return (error, trace_id, request) => {
    if (error instanceof ApiError && error.code === 'unavailable') logOutage({ error, trace_id });
    else log.error({ err: error, trace_id, ...request }, 'request failed');
  };
}
