/**
 * What a caller of a proxy is told when its request did not get an answer of the destination: every
 * failure is wrapped as `proxy_error` (facts 2.3). No text of the destination, no host, no value.
 */
import { EgressError } from '../../shared/egress/egress-error.ts';
import { ApiError } from '../../shared/errors.ts';
import { translateDatabaseError } from '../../shared/postgres/database-error.ts';
import type { Answer } from '../exchange.ts';
import { ExchangeEnded } from './exchange.ts';

/** Existing clients look for it. */
const BAD_REQUEST_TITLE = 'Invalid proxy request';

const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);
const BROKEN_ANSWERS = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
]);
/** The request could not be written as it was made: a fault of ours. */
const OUR_FAULTS = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);
const STOPPING = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** An error on the way to a destination's answer, as its caller may know it. */
export function destinationError(error: unknown): unknown {
  if (error instanceof EgressError) return badGateway(error.message, error);
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  if (error instanceof ExchangeEnded) return endedError(error);
  if (typeof code !== 'string') return brokenParser(error) ?? error;
  if (TIMEOUTS.has(code)) return timeoutError();
  if (BROKEN_ANSWERS.has(code) || code.startsWith('HPE_')) return invalidAnswer(error);
  if (code === 'UND_ERR_MAX_ORIGINS_REACHED') {
    return new ApiError('unavailable', 'Too many destinations are in use', { cause: error });
  }
  if (STOPPING.has(code)) return new ApiError('unavailable', 'The service stops; try again');
  if (OUR_FAULTS.has(code)) return error;
  const lost = 'The connection to the destination ended before its answer';
  return brokenParser(error) ?? badGateway(lost, error);
}

function endedError(error: ExchangeEnded): Error {
  // There is nobody to be told.
  if (error.reason === 'caller_gone') return error;
  if (error.reason === 'revoked') return error.cause as Error;
  return error.reason === 'timeout' ? timeoutError() : invalidAnswer(error);
}

/** The parser's errors mostly have no code; an assertion of its is one about what it has read. */
function brokenParser(error: unknown): ApiError | undefined {
  if (!(error instanceof Error)) return undefined;
  const isParser = error.name === 'HTTPParserError' || error.name === 'AssertionError';
  return isParser ? invalidAnswer(error) : undefined;
}

function timeoutError(): ApiError {
  return new ApiError('request_timeout', 'The destination did not answer within 25 seconds');
}

/** Nothing was sent to where the proxy led before: its owner's doing, and no fault of ours. */
export class MovedError extends ApiError {
  constructor() {
    super('unavailable', 'The destination of the proxy was changed; try again', {
      headers: { 'retry-after': '1' },
    });
    this.name = 'MovedError';
  }
}

export function invalidAnswer(cause: unknown): ApiError {
  return badGateway('The destination did not answer with valid HTTP', cause);
}

export function badGateway(detail: string, cause?: unknown): ApiError {
  return new ApiError('bad_gateway', detail, { cause });
}

/** Any error of a proxied request as an error of the catalogue; `undefined`: a fault of ours. */
export function asApiError(error: unknown): ApiError | undefined {
  const translated = translateDatabaseError(error);
  return translated instanceof ApiError ? translated : undefined;
}

/** The answer, without the headers that only concern the connection. */
export function proxyErrorAnswer(error: ApiError): Answer {
  const headers = Object.entries(error.headers ?? {}).filter(([name]) => name !== 'connection');
  return { status: error.status, headers: headers.flat(), body: proxyErrorBody(error) };
}

export function proxyErrorBody(error: ApiError): string {
  const problem = error.toProblem();
  const title = error.code === 'bad_request' ? BAD_REQUEST_TITLE : problem.title;
  return JSON.stringify({ proxy_error: { errors: {}, ...problem, title } });
}
