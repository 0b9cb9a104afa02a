/** One line on why a start or a command failed, for a person at a terminal. */
import { ApiError } from '../shared/errors.ts';

/** The message of an error and of its causes, or at least a code; never a stack. */
export function failureLine(error: unknown): string {
  if (!(error instanceof Error)) return 'an unknown error';
  if (error instanceof ApiError && error.errors !== undefined) return fieldLines(error.errors);
  // A connection refused on every address is an AggregateError without a message.
  const { code } = error as NodeJS.ErrnoException;
  const own = error.message || code || error.name;
  const cause = error.cause instanceof Error ? ` (${failureLine(error.cause)})` : '';
  return `${own}${cause}`.replaceAll(/\s+/g, ' ');
}

function fieldLines(errors: Record<string, string[]>): string {
  return Object.entries(errors)
    .map(([path, messages]) => `${path}: ${messages.join(', ')}`)
    .join('; ');
}
