/**
 * `sallyport`, the command line. Results go to stdout, everything else to stderr; no secret is ever
 * taken from the arguments, which other users of the machine can read.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { describeEnvironment } from '../config/environment.ts';
import { failureLine } from '../embedded/failure-line.ts';
import { surviveBrokenPipes } from '../embedded/survive-broken-pipes.ts';
import { auditCommand } from './audit.ts';
import { keyCommand } from './key.ts';
import { reactorCommand } from './reactor.ts';
import { startCommand } from './start.ts';
import { tenantCommand } from './tenant.ts';

/** 0 done, 1 failed, 2 not understood. */
const FAILED = 1;
const MISUSED = 2;

const CALLING = `From a clone: \`npm run sallyport -- --help\`, and for a program that reads the answer
\`npm run -s sallyport -- … --json\` (-s keeps npm's own lines away).`;

/** Runs one command line (without the program's name); settles with the exit code. */
export async function runCommandLine(argv: string[], source: NodeJS.ProcessEnv): Promise<number> {
  let code = 0;
  const finish = (result: number): void => {
    code = result;
  };
  const program = new Command('sallyport')
    .description('A self-hosted vault for cards, bank accounts and other secrets.')
    .version(ownVersion())
    .addHelpText('after', `\n${CALLING}\n${environmentHelp()}`)
    .addCommand(startCommand(source, finish))
    .addCommand(tenantCommand(source))
    .addCommand(keyCommand(source))
    .addCommand(auditCommand(source, finish))
    .addCommand(reactorCommand(source, finish));
  for (const command of [
    program,
    ...program.commands,
    ...program.commands.flatMap((c) => c.commands),
  ]) {
    command.exitOverride().showHelpAfterError('(--help says more)');
  }
  try {
    await program.parseAsync(argv, { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : MISUSED;
    process.stderr.write(`${failureLine(error)}\n`);
    return FAILED;
  }
}

function ownVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function environmentHelp(): string {
  const rows = describeEnvironment().map(
    ({ name, fallback, text }) => `  ${name}\n      ${text}\n      default: ${fallback}`,
  );
  return `\nSettings are environment variables:\n${rows.join('\n')}`;
}

if (import.meta.main) {
  surviveBrokenPipes();
  process.exit(await runCommandLine(process.argv.slice(2), process.env));
}
