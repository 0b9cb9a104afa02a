/**
 * `npm start`: everything in one place, until a signal. The first SIGTERM or SIGINT drains and ends
 * with 0, a second one ends at once. Only the welcome and the ready line go to stdout.
 */
import { resolve } from 'node:path';
import { type Environment, readEnvironment } from '../config/environment.ts';
import { createLogger, type Logger } from '../shared/observability/logger.ts';
import { ENDING_AT_ONCE, SECOND_SIGNAL } from '../shared/process/drain.ts';
import { endOnCrash } from '../shared/process/end-on-crash.ts';
import { type FirstStart, type Part, startAllInOne } from './all-in-one.ts';
import { failureLine } from './failure-line.ts';
import { surviveBrokenPipes } from './survive-broken-pipes.ts';
import { firstStepsText, type ManagementKey, newVaultText, readyText } from './welcome.ts';

/** One press of Ctrl-C often arrives twice: from the terminal, and passed on by npm. */
const SAME_SIGNAL_MS = 250;
/** Requests under way may take as long as a drain: who waits for the end is told how to have it at once. */
const STOPPING = `stopping once requests under way are answered; ${SECOND_SIGNAL}`;

/** Runs Sallyport with these variables; settles with the exit code when all of it has ended. */
export async function start(source: NodeJS.ProcessEnv): Promise<number> {
  surviveBrokenPipes();
  const parts: Part[] = [];
  let log: Logger | undefined;
  const signalled = onFirstSignal((signal) => log?.warn({ signal }, ENDING_AT_ONCE));
  // Also after an error that nobody caught: no Postgres may go on without its owner.
  process.once('exit', () => killAll(parts));
  let code = 0;
  try {
    const environment = readEnvironment(source);
    log = createLogger('sallyport', environment.logLevel);
    endOnCrash(log);
    code = await runUntil(signalled, environment, source, parts, log);
  } catch (error) {
    process.stderr.write(`Sallyport did not start: ${failureLine(error)}\n`);
    code = 1;
  }
  const stoppingAt = performance.now();
  if (!(await stopAll(parts))) return 1;
  const duration_ms = Math.round(performance.now() - stoppingAt);
  if (code === 0) log?.info({ duration_ms }, 'stopped');
  return code;
}

async function runUntil(
  signalled: Promise<NodeJS.Signals>,
  environment: Environment,
  inherited: NodeJS.ProcessEnv,
  parts: Part[],
  log: Logger,
): Promise<number> {
  let managementKey: ManagementKey | undefined;
  const onFirstStart = ({ managementKey: generated, kekFile }: FirstStart): void => {
    managementKey = generated === undefined ? givenKey(inherited) : { generated };
    process.stdout.write(newVaultText(managementKey, kekFile));
  };
  const running = await startAllInOne({ environment, inherited, log, parts, onFirstStart });
  const { baseUrl, metricsPort, lost } = running;
  log.debug({ port: metricsPort }, 'metrics');
  const certFile = environment.tlsCertFile;
  const firstSteps =
    managementKey === undefined ? '' : firstStepsText(baseUrl, managementKey, certFile);
  process.stdout.write(firstSteps + readyText(baseUrl));

  const never = new Promise<void>(() => undefined);
  const signal = await Promise.race([signalled, lost ?? never]);
  if (signal === undefined) {
    log.fatal('another process has taken DATA_DIR, or it was removed: stopping');
    return 1;
  }
  log.info({ signal }, STOPPING);
  return 0;
}

function givenKey({ SALLYPORT_BOOTSTRAP_KEY_FILE: file }: NodeJS.ProcessEnv): ManagementKey {
  return { variable: 'SALLYPORT_BOOTSTRAP_KEY', file: file ? resolve(file) : undefined };
}

/** Settles with the first signal; a second one ends the process, after `onSecond`. */
function onFirstSignal(onSecond: (signal: NodeJS.Signals) => void): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let first: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    first ??= now;
    resolve(signal);
    if (now === first || now - first < SAME_SIGNAL_MS) return;
    onSecond(signal);
    process.exit(1);
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
  return promise;
}

/** Ends the parts, last first; one that fails does not keep the others from ending. */
async function stopAll(parts: Part[]): Promise<boolean> {
  let clean = true;
  for (const part of parts.toReversed()) {
    await part.stop().catch((error: unknown) => {
      clean = false;
      process.stderr.write(`Sallyport did not stop cleanly: ${failureLine(error)}\n`);
    });
  }
  parts.length = 0;
  return clean;
}

function killAll(parts: Part[]): void {
  for (const part of parts.toReversed()) part.kill();
}

if (import.meta.main) process.exit(await start(process.env));
