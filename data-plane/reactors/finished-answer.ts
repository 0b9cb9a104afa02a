/** What a reaction that ran is answered: of what came of the script, and the tokens made of it. */
import type { Answer } from '../exchange.ts';
import type { FinishedReaction } from './reaction.ts';
import type { ReactionInput } from './read-arguments.ts';
import { type Returned, ReturnedError, readReturned } from './returned.ts';
import { failureAnswer, runtimeError } from './script-failure.ts';

/** The answer to a run that did not end well, or what it returned, from which tokens are to be made. */
export type Outcome = { readonly answer: Answer } | { readonly returned: Returned };

/** `debug`: as of `debugText`. Throws 429 and 503 when the code was not run. */
export function outcomeOf({ result }: FinishedReaction, debug: string | undefined): Outcome {
  if (result.kind !== 'ok') return { answer: failureAnswer(result, debug) };
  try {
    return { returned: readReturned(result.value) };
  } catch (error) {
    if (error instanceof ReturnedError) return { answer: runtimeError(error.message, debug) };
    throw error;
  }
}

/** `tokens`: JSON text of what was made, `undefined` when nothing was asked for. */
export function returnedAnswer(
  { raw }: Returned,
  tokens: string | undefined,
  debug: string | undefined,
): Answer {
  const present = Object.entries({ tokens, raw, _debug: debug }).filter(
    ([, json]) => json !== undefined,
  );
  return { status: 200, body: `{${present.map(([name, json]) => `"${name}":${json}`).join(',')}}` };
}

/** JSON text of `_debug`; `undefined` when nobody debugs the reactor. */
export function debugText(
  { result, console, duration_ms }: FinishedReaction,
  secrets: ReactionInput['secrets'],
): string | undefined {
  if (secrets === undefined) return undefined;
  return JSON.stringify({
    console: secrets.redact(console),
    duration_ms: Math.round(duration_ms),
    line: result.kind === 'error' ? result.error.line : undefined,
  });
}
