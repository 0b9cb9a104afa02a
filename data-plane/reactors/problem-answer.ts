/** An error as an answer that is kept, or delivered, as any other. */
import type { ApiError } from '../../shared/errors.ts';
import { PROBLEM_MEDIA_TYPE } from '../../shared/http/media-type.ts';
import type { Answer } from '../exchange.ts';

export function problemAnswer(error: ApiError): Answer {
  return {
    status: error.status,
    headers: ['content-type', PROBLEM_MEDIA_TYPE],
    body: JSON.stringify(error.toProblem()),
  };
}
