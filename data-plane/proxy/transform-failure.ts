/**
 * How a transform that did not end well is told: as the error that a reactor would have been answered
 * with (facts 2.3 and 2.4), for the one who wraps the errors of proxies.
 */
import { ApiError, type FieldErrors, type ProblemDetails } from '../../shared/errors.ts';
import type { ScriptResult } from '../../shared/sandbox/protocol.ts';
import type { Answer } from '../exchange.ts';
import { customProblem, failureAnswer } from '../reactors/script-failure.ts';

type Failure = Exclude<ScriptResult, { kind: 'ok' }>;
type ScriptProblem = ProblemDetails & { detail: string; errors: FieldErrors };

const TITLE = 'One or more validation errors occurred.';

/**
 * A request that a transform ended. Its status is one of the reactor errors', some of which only
 * scripts have; `code` says nothing more. Nothing of it may be logged: the script chose the words.
 */
export class TransformError extends ApiError {
  override readonly status: number;
  readonly #problem: ScriptProblem;

  constructor(problem: ScriptProblem) {
    super('internal', problem.detail, { errors: problem.errors });
    this.name = 'TransformError';
    this.status = problem.status;
    this.#problem = problem;
  }

  override toProblem(): ProblemDetails {
    return { ...this.#problem };
  }
}

/** The 500 of a transform that failed in a way its code did not choose, with a message of ours. */
export function runtimeProblem(message: string): TransformError {
  const errors = { error: [message] };
  return new TransformError({ title: TITLE, status: 500, detail: 'Reactor Runtime Error', errors });
}

/**
 * The whole response when the transform threw a CustomHttpResponseError. Every other failure is thrown:
 * a `TransformError`, or 429 and 503 when there was no room for the run.
 */
export function customResponse(result: Failure): Answer {
  const isCustom =
    result.kind === 'custom_response' && customProblem(result, undefined) === undefined;
  const answer = failureAnswer(result, undefined, 'transform');
  if (isCustom) return answer;
  throw new TransformError(JSON.parse(answer.body ?? '') as ScriptProblem);
}
