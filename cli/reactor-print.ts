/**
 * Prints how a run ended. What a script wrote is printed so that it cannot act on a terminal: nothing
 * of it is taken for an escape sequence, or for a line of ours.
 */
import type { ConsoleLine } from '../shared/sandbox/protocol.ts';
import type { Outcome } from './reactor-outcome.ts';

export interface FinishedScript {
  readonly outcome: Outcome;
  readonly console: readonly ConsoleLine[];
  /** Of connections. */
  readonly refusals: ReadonlySet<string>;
  readonly duration_ms: number;
}

/** Control characters but tab and line feed, and those that turn the direction of text. */
const ACTING = /[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g;
const INDENT = 2;

/** The result on stdout, everything else on stderr; `file`: what the user calls the script. */
export function printForPerson(
  file: string,
  { outcome, console, refusals, duration_ms }: FinishedScript,
): void {
  for (const { level, text } of console) {
    tell(`${visible(level)}: ${visible(text).replaceAll('\n', '\n  ')}`);
  }
  const error = outcome.exit_code === 0 ? '' : JSON.stringify(outcome.error);
  for (const refusal of refusals) {
    // The script's error mostly says so itself.
    if (!error.includes(refusal)) tell(`a connection was refused: ${refusal}`);
  }
  if (outcome.exit_code === 0) {
    process.stdout.write(
      `${visible(process.stdout.isTTY ? spread(outcome.value) : outcome.value)}\n`,
    );
  } else {
    if (outcome.line !== undefined) tell(`${visible(file)}:${outcome.line}`);
    // On one line: nothing bounds how deep the body of a CustomHttpResponseError is.
    tell(visible(error));
  }
  tell(`ended after ${duration_ms} ms`);
}

/** One line on stdout with everything, whatever it is. */
export function printForProgram({ outcome, console, duration_ms }: FinishedScript): void {
  const ended = outcome.exit_code === 0 ? outcome.value : 'null';
  const { error, line } = outcome.exit_code === 0 ? { error: null, line: undefined } : outcome;
  const rest = JSON.stringify({ console, duration_ms, error, line });
  process.stdout.write(`${visible(`{"result":${ended},${rest.slice(1)}`)}\n`);
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** JSON text over several lines, for reading. */
function spread(text: string): string {
  return JSON.stringify(JSON.parse(text), undefined, INDENT);
}

/** As JSON writes characters inside strings, where alone JSON text can have these. */
function visible(text: string): string {
  return text.replace(
    ACTING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
