/**
 * How a script that did not end well is answered: the reactor errors of the API (facts 2.4) as problem
 * details. What the script said is its caller's to read, and nobody else's: none of it is logged.
 */
import { ApiError, type FieldErrors } from '../../shared/errors.ts';
import { PROBLEM_MEDIA_TYPE } from '../../shared/http/media-type.ts';
import type { ScriptResult } from '../../shared/sandbox/protocol.ts';
import { timeoutMessage, withLine } from '../../shared/sandbox/script-result.ts';
import type { Answer } from '../exchange.ts';
import { type CustomResponse, customAnswer } from './custom-response.ts';

type Failure = Exclude<ScriptResult, { kind: 'ok' }>;

const TITLE = 'One or more validation errors occurred.';
const RETRY_AFTER_S = '1';
/** Of a script's own words that we quote. */
const QUOTED_LENGTH_MAX = 1_024;
/** A status below it is no end of a request (RFC 9110 section 15.2). */
const FINAL_STATUS_MIN = 200;

/** Of all headers of a custom response: half of what common clients take. */
const HEADERS_LENGTH_MAX = 8 * 1024;

/** What the script is to whoever reads of its failure. */
export type ScriptRole = 'reactor' | 'transform';

/** Our words for ends that the script did not choose, with `$` for its role. */
const RUNTIME_ERRORS = {
  memory: 'The $ ran out of memory.',
  result_too_large: 'The result of the $ is larger than 5 MiB.',
  crashed: 'The $ ended the process that ran it.',
  interrupted: 'The $ was interrupted and not started again, because it had called out.',
} as const;

/** Throws 429 when the tenant is over its share, 503 when the machine is full. */
export function failureAnswer(
  result: Failure,
  debug: string | undefined,
  role: ScriptRole = 'reactor',
): Answer {
  switch (result.kind) {
    case 'error':
      return problem(result.error.status, result.error.detail, result.error.errors, debug);
    case 'custom_response':
      return customProblem(result, debug) ?? customAnswer(result);
    case 'syntax':
      return invalidFormula(withLine(quoted(result.message), result.line), debug);
    case 'type':
      return invalidFormula(quoted(result.message), debug);
    case 'unknown_module':
      return invalidFormula(`There is no module ${JSON.stringify(quoted(result.module))}.`, debug);
    case 'busy':
      throw busy(result.scope, role);
    case 'timeout':
      return runtimeError(timeoutMessage(role, result), debug);
    default:
      return runtimeError(RUNTIME_ERRORS[result.kind].replace('$', role), debug);
  }
}

/** The 500 in place of a response that no caller could be sent. */
export function customProblem(
  { status, headers }: CustomResponse,
  debug: string | undefined,
): Answer | undefined {
  if (status < FINAL_STATUS_MIN) {
    return runtimeError('The status of a CustomHttpResponseError must be 200 to 599.', debug);
  }
  if (Object.entries(headers).flat().join('').length > HEADERS_LENGTH_MAX) {
    return runtimeError('The headers of a CustomHttpResponseError are too large.', debug);
  }
  return undefined;
}

/** The 500 of a failing script with one message of ours. */
export function runtimeError(message: string, debug: string | undefined): Answer {
  return problem(500, 'Reactor Runtime Error', { error: [message] }, debug);
}

/** `debug`: JSON text of the `_debug` member, if there is one. */
export function problem(
  status: number,
  detail: string,
  errors: FieldErrors,
  debug: string | undefined,
): Answer {
  const body = JSON.stringify({ title: TITLE, status, detail, errors });
  return {
    status,
    headers: ['content-type', PROBLEM_MEDIA_TYPE],
    body: debug === undefined ? body : `${body.slice(0, -1)},"_debug":${debug}}`,
  };
}

function invalidFormula(message: string, debug: string | undefined): Answer {
  return problem(422, 'Invalid Reactor Formula', { error: [message] }, debug);
}

function busy(scope: 'tenant' | 'machine', role: ScriptRole): ApiError {
  const headers = { 'retry-after': RETRY_AFTER_S };
  return scope === 'tenant'
    ? new ApiError('too_many_requests', `Too many ${role}s of the tenant run already`, { headers })
    : new ApiError('unavailable', `No sandbox has room for the ${role}; try again`, { headers });
}

const quoted = (text: string): string => text.slice(0, QUOTED_LENGTH_MAX);
