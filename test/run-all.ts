/**
 * Runs every test (or the files given as arguments) on one embedded Postgres, in three processes side by
 * side: much of a run is waiting for deadlines to pass. The last line is `N passed, N failed`, counted as
 * the results come in; the exit code is 0 only when nothing failed.
 */
import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { CountMessage } from './support/counting-reporter.ts';
import { stopTestServer, TEST_SERVER_VARIABLE, testServer } from './support/test-server.ts';

/** A run that has reported its end but does not end has leaked a socket, a timer or a process. */
const LINGER_MS = 10_000;
/** What each process runs; together every folder of tests (held by test/unit/architecture.test.ts). */
const LANES = [
  ['test/{api,embedded}/**/*.test.ts'],
  ['test/{proxy,sandbox,security}/**/*.test.ts'],
  ['test/{clients,faults,unit}/**/*.test.ts'],
];

/** What one process of a run has compiled no other compiles again, the planes that tests start included. */
const COMPILE_CACHE = join(import.meta.dirname, '../node_modules/.cache/sallyport/tests');

interface Outcome {
  passed: number;
  failed: number;
  pending: number;
}

/** What the process prints is shown at its end, unless it is the `first`, which prints at once. */
async function runMocha(
  files: string[],
  environment: NodeJS.ProcessEnv,
  first: boolean,
): Promise<Outcome> {
  const outcome: Outcome = { passed: 0, failed: 0, pending: 0 };
  const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js');
  const reporter = new URL('./support/counting-reporter.ts', import.meta.url).pathname;
  const printed = first ? 'inherit' : 'pipe';
  const child = fork(mocha, ['--reporter', reporter, ...files], {
    env: environment,
    stdio: ['ignore', printed, printed, 'ipc'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
  }
  const interrupt = (signal: NodeJS.Signals): void => void child.kill(signal);
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  let linger: NodeJS.Timeout | undefined;
  child.on('message', ({ type }: CountMessage) => {
    if (type !== 'end') outcome[type] += 1;
    else {
      linger = setTimeout(() => {
        process.stderr.write('The tests are done but their process does not end: a leak.\n');
        child.kill('SIGKILL');
      }, LINGER_MS);
    }
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(linger);
  process.stdout.write(text);
  // Died, leaked, or a file that could not be loaded: a failure, though no test says so.
  if (code !== 0 && outcome.failed === 0) outcome.failed = 1;
  if (outcome.passed === 0 && outcome.failed === 0) outcome.failed = 1;
  return outcome;
}

async function runAll(lanes: string[][]): Promise<Outcome> {
  try {
    const server = await testServer();
    const environment = {
      ...process.env,
      NODE_ENV: 'test',
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      [TEST_SERVER_VARIABLE]: JSON.stringify(server),
    };
    const outcomes = await Promise.all(
      lanes.map((files, lane) => runMocha(files, environment, lane === 0)),
    );
    const sum = (of: keyof Outcome): number => outcomes.reduce((all, one) => all + one[of], 0);
    return { passed: sum('passed'), failed: sum('failed'), pending: sum('pending') };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : 'unknown error'}\n`);
    return { passed: 0, failed: 1, pending: 0 };
  } finally {
    await stopTestServer();
  }
}

const files = process.argv.slice(2);
const outcome = await runAll(files.length === 0 ? LANES : [files]);
if (outcome.pending > 0) process.stdout.write(`${outcome.pending} skipped (reasons above)\n`);
process.stdout.write(`${outcome.passed} passed, ${outcome.failed} failed\n`);
process.exitCode = outcome.failed === 0 ? 0 : 1;
