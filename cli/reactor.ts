/**
 * `sallyport reactor run`: tries a script out in the sandbox of the data plane, with its limits. Needs
 * no database and no running Sallyport.
 */
import { constants } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type Environment, readEnvironment } from '../config/environment.ts';
import { EnvironmentError } from '../config/read-variable.ts';
import { failureLine } from '../embedded/failure-line.ts';
import { createLogger, type Logger } from '../shared/observability/logger.ts';
import { DEADLINE_MS_DEFAULT, DEADLINE_MS_MAX } from '../shared/sandbox/protocol.ts';
import type { ScriptFetch } from '../shared/sandbox/script-fetch.ts';
import { callersPath } from './caller-folder.ts';
import { InputError, readInput, type ScriptInput } from './reactor-input.ts';
import { outcomeOf, SANDBOX_FAULT, TRANSFORMS, type Transform } from './reactor-outcome.ts';
import { printForPerson, printForProgram } from './reactor-print.ts';
import { openFetch, runInSandbox } from './reactor-sandbox.ts';

interface RunOptions {
  readonly args?: string;
  readonly configuration?: string;
  readonly transform?: Transform;
  readonly timeoutMs: number;
  readonly json?: true;
}

interface Prepared {
  readonly input: ScriptInput;
  readonly environment: Environment;
  readonly fetches: ScriptFetch;
  /** Of connections, in words for a person; filled as the script runs. */
  readonly refusals: ReadonlySet<string>;
  readonly log: Logger;
}

const EXIT_CODES = `
Exit codes: 0 it returned a result; 1 it threw, does not compile or returned what cannot be used;
2 the command cannot be carried out as given; 3 the sandbox ended it (time, memory, size, crash).`;
/** What a shell makes of the end by a signal. */
const SIGNAL_EXIT_CODE = 128;

/** `finish` gets the exit code. */
export function reactorCommand(source: NodeJS.ProcessEnv, finish: (code: number) => void): Command {
  const reactor = new Command('reactor').description('try out the code of reactors');
  reactor
    .command('run')
    .description('run a script in the sandbox, as a reactor without an application would')
    .argument('<file>', 'CommonJS file that assigns its function to module.exports')
    .option('--args <file>', 'JSON file with what req.args shall be; - is standard input')
    .option('--configuration <file>', 'JSON file with what req.configuration shall be')
    .addOption(
      new Option('--transform <kind>', 'check that the result suits a proxy').choices(TRANSFORMS),
    )
    .option('--timeout-ms <ms>', 'when to cut it', parseTimeout, DEADLINE_MS_DEFAULT)
    .option('--json', 'answer with one object: result, console, duration_ms, error')
    .addHelpText('after', EXIT_CODES)
    .action(async (file: string, options: RunOptions, command: Command) =>
      finish(await run(file, options, await prepare(source, file, options, command))),
    );
  return reactor;
}

function parseTimeout(text: string): number {
  const timeout_ms = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (timeout_ms >= 1 && timeout_ms <= DEADLINE_MS_MAX) return timeout_ms;
  throw new InvalidArgumentError(`It must be 1 to ${DEADLINE_MS_MAX} milliseconds.`);
}

/** Reads everything before anything starts; what cannot be used is a misuse of the command. */
async function prepare(
  source: NodeJS.ProcessEnv,
  file: string,
  { args, configuration }: RunOptions,
  command: Command,
): Promise<Prepared> {
  try {
    const environment = readEnvironment(source);
    const level = environment.logLevel === 'info' ? 'warn' : environment.logLevel;
    const log = createLogger('sallyport', level);
    const refusals = new Set<string>();
    const fetches = openFetch(environment, (message) => refusals.add(message));
    const pathOf = (path: string): string => callersPath(path, source);
    const input = await readInput(
      pathOf(file),
      args && pathOf(args),
      configuration && pathOf(configuration),
    );
    return { input, environment, fetches, refusals, log };
  } catch (error) {
    if (error instanceof InputError || error instanceof EnvironmentError) {
      command.error(`error: ${error.message}`);
    }
    throw error;
  }
}

/** Settles with the exit code. */
async function run(
  file: string,
  { transform, timeoutMs: deadline_ms, json }: RunOptions,
  { input, environment, fetches, refusals, log }: Prepared,
): Promise<number> {
  const { source, args = 'null', configuration = '{}' } = input;
  const script = { source, args, configuration, deadline_ms };
  const attempt = await runInSandbox(script, fetches, environment, log);
  if (attempt.kind === 'signal') return SIGNAL_EXIT_CODE + constants.signals[attempt.signal];
  if (attempt.kind === 'no_sandbox') {
    process.stderr.write(`the sandbox cannot start: ${failureLine(attempt.error)}\n`);
    return SANDBOX_FAULT;
  }
  const { run: ended, duration_ms } = attempt;
  const outcome = outcomeOf(ended.result, transform);
  const finished = { outcome, console: ended.console, refusals, duration_ms };
  if (json === true) printForProgram(finished);
  else printForPerson(file, finished);
  return outcome.exit_code;
}
