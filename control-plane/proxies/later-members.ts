/**
 * Members by which later versions of the API keep values from a destination or from the caller. What else is not
 * served is ignored; a proxy that were made without one of these would show what its owner meant to be kept back.
 */
import { type FieldErrors, validationError } from '../../shared/errors.ts';

const BY_CODE = 'Is not served; code does the same, in request_transform and response_transform';
const LATER_MEMBERS = {
  request_transforms: BY_CODE,
  response_transforms: BY_CODE,
  request_reactor_id: BY_CODE,
  response_reactor_id: BY_CODE,
  disable_detokenization: 'Is not served: expressions are always looked for',
};

/** Throws a validation error that names those of `body` that ask for something. */
export function refuseLaterMembers(body: object): void {
  const given = body as Record<string, unknown>;
  const errors: FieldErrors = {};
  for (const [name, message] of Object.entries(LATER_MEMBERS)) {
    if (asks(given[name])) errors[name] = [message];
  }
  if (Object.keys(errors).length > 0) throw validationError(errors);
}

/** Client libraries write the absence of a thing in all of these ways. */
function asks(value: unknown): boolean {
  const isNone = value === undefined || value === null || value === false;
  return !isNone && !(Array.isArray(value) && value.length === 0);
}
