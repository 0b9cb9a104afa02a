/**
 * How a script's end is told at the command line: what it returned, or the error that a caller of the
 * reactor would be answered with, and the exit code. Pure.
 */
import { ApiError } from '../shared/errors.ts';
import { JSON_DEPTH_MAX, scanJson } from '../shared/json-scan.ts';
import type { ScriptResult } from '../shared/sandbox/protocol.ts';
import { timeoutMessage, withLine } from '../shared/sandbox/script-result.ts';

/** 2 is for a command that is not understood, see main.ts. */
export const SCRIPT_ERROR = 1;
export const SANDBOX_FAULT = 3;

export const TRANSFORMS = ['request', 'response'] as const;
export type Transform = (typeof TRANSFORMS)[number];

/** The documented form of a reactor's error. */
export interface Problem {
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly errors: Record<string, string[]>;
}

/** A CustomHttpResponseError. */
interface CustomResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body?: unknown;
}

export type Outcome =
  /** `value`: JSON text. */
  | { readonly exit_code: 0; readonly value: string }
  | {
      readonly exit_code: typeof SCRIPT_ERROR | typeof SANDBOX_FAULT;
      readonly error: Problem | CustomResponse;
      /** Where the script does not compile, or threw. */
      readonly line?: number | undefined;
    };

const TITLE = 'One or more validation errors occurred.';
/** Of a script's own words that are quoted. */
const QUOTED_LENGTH_MAX = 1_024;
/** What a result holds may be as deep as the data of a token. */
const RESULT_DEPTH_MAX = JSON_DEPTH_MAX + 1;
/** A status below it is no end of a request (RFC 9110 section 15.2). */
const FINAL_STATUS_MIN = 200;

/** Ends that the script did not choose. */
const FAULTS = {
  memory: 'The reactor ran out of memory.',
  result_too_large: 'The result of the reactor is larger than 5 MiB.',
  crashed: 'The reactor ended the process that ran it.',
  interrupted: 'The reactor was interrupted and not started again, because it had called out.',
  busy: 'The sandbox had no room for the reactor.',
} as const;

/** `transform`: the script is to be one of a proxy, so its result must be a message. */
export function outcomeOf(result: ScriptResult, transform: Transform | undefined): Outcome {
  switch (result.kind) {
    case 'ok': {
      const wrong = whyNotPassedOn(result.value) ?? whyNoMessage(result.value, transform);
      return wrong === undefined
        ? { exit_code: 0, value: result.value }
        : scriptError(runtimeProblem(wrong));
    }
    case 'error': {
      const { status, detail, errors, line } = result.error;
      return { ...scriptError({ title: TITLE, status, detail, errors }), line };
    }
    case 'custom_response':
      return scriptError(customResponse(result));
    case 'syntax': {
      const { message, line } = result;
      return { ...invalidCode(withLine(quoted(message), line)), line };
    }
    case 'type':
      return invalidCode(quoted(result.message));
    case 'unknown_module':
      return invalidCode(`There is no module ${JSON.stringify(quoted(result.module))}.`);
    case 'timeout':
      return sandboxFault(timeoutMessage('reactor', result));
    default:
      return sandboxFault(FAULTS[result.kind]);
  }
}

function sandboxFault(message: string): Outcome {
  return { exit_code: SANDBOX_FAULT, error: runtimeProblem(message) };
}

function scriptError(error: Problem | CustomResponse): Outcome & { readonly exit_code: 1 } {
  return { exit_code: SCRIPT_ERROR, error };
}

function invalidCode(message: string): Outcome & { readonly exit_code: 1 } {
  const errors = { error: [message] };
  return scriptError({ title: TITLE, status: 422, detail: 'Invalid Reactor Formula', errors });
}

function runtimeProblem(message: string): Problem {
  const errors = { error: [message] };
  return { title: TITLE, status: 500, detail: 'Reactor Runtime Error', errors };
}

function customResponse({
  status,
  headers,
  body,
}: Extract<ScriptResult, { kind: 'custom_response' }>): Problem | CustomResponse {
  if (status < FINAL_STATUS_MIN) {
    return runtimeProblem('The status of a CustomHttpResponseError must be 200 to 599.');
  }
  return { status, headers, ...(body === undefined ? {} : { body: JSON.parse(body) }) };
}

/** What keeps the data plane from reading the result, if anything. */
function whyNotPassedOn(value: string): string | undefined {
  try {
    scanJson(Buffer.from(value), RESULT_DEPTH_MAX, Number.POSITIVE_INFINITY);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return `The result of the code cannot be passed on. ${error.message}`;
  }
  const isReadable = value === 'null' || value.startsWith('{');
  return isReadable ? undefined : 'The code must return an object or nothing.';
}

interface Message {
  readonly body?: unknown;
  readonly headers?: unknown;
}

/** Facts 10.3: a body of any kind, headers of texts, at least one of them. */
function whyNoMessage(value: string, transform: Transform | undefined): string | undefined {
  if (transform === undefined) return undefined;
  const result = { ...(JSON.parse(value) as Message & { raw?: Message }) };
  // Older code returns its message inside `raw`.
  const isInside = result.body === undefined && result.headers === undefined;
  const { body, headers }: Message = { ...(isInside ? result.raw : result) };
  if (body === undefined && headers === undefined) {
    return `A ${transform} transform must return an object with body, headers or both.`;
  }
  const isFine = headers === undefined || areHeaders(headers);
  return isFine ? undefined : 'The headers of a transform must be an object of texts.';
}

/** Null is no header; only cookies may be a list. */
function areHeaders(headers: unknown): boolean {
  if (headers === null) return true;
  if (typeof headers !== 'object' || Array.isArray(headers)) return false;
  const isValue = (value: unknown): boolean =>
    value === null || ['string', 'number', 'boolean'].includes(typeof value);
  return Object.entries(headers).every(([name, value]) =>
    Array.isArray(value) && name.toLowerCase() === 'set-cookie'
      ? value.every(isValue)
      : isValue(value),
  );
}

const quoted = (text: string): string => text.slice(0, QUOTED_LENGTH_MAX);
