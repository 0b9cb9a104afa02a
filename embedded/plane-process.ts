/**
 * Runs a plane as a child process: started again when it dies, asked for its metrics, drained by
 * SIGTERM. Its settings go by environment, never by argv, and it cannot leave a core dump.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Logger } from '../shared/observability/logger.ts';

export type MetricsAsJson = MetricObjectWithValues<MetricValue<string>>[];

/** What a plane says of itself; absent metrics mean that it did not answer. */
export interface PlaneReport {
  readonly metrics?: MetricsAsJson;
  readonly ready: boolean;
  readonly problems: readonly string[];
}

export interface PlaneProcess {
  readonly name: string;
  /** The port it listens on; the same one after a restart. */
  readonly port: number;
  pid(): number | undefined;
  isAlive(): boolean;
  report(): Promise<PlaneReport>;
  /** Lets it finish what it does; kills it when that takes too long. */
  stop(): Promise<void>;
  /** Ends it at once. */
  kill(): void;
}

export interface PlaneOptions {
  readonly name: string;
  /** Path of its `main.ts` from the root of the repository. */
  readonly entry: string;
  /** Its whole environment, given the port to listen on: the one it had, after a restart. */
  readonly environment: (port: number | undefined) => NodeJS.ProcessEnv;
  readonly log: Logger;
}

type Message =
  | { type: 'ready'; port: number }
  | ({ type: 'metrics'; id: number } & Required<PlaneReport>);

const RESTART_MS_MIN = 100;
const RESTART_MS_MAX = 5_000;
/** Having lived this long, a plane starts again without the delay that repeated deaths add. */
const STABLE_MS = 10_000;
/** A proxied call may take 25 s and must end before the process does. */
const DRAIN_MS = 30_000;
/** Shorter than any scraper's patience. */
const REPORT_MS = 2_000;

/** Starts the plane and settles when it listens. Throws when it ends before. */
export async function startPlane(options: PlaneOptions): Promise<PlaneProcess> {
  const { name, log } = options;
  let child = launch(options, undefined);
  const port = await firstPort(name, child);
  const stopped = Promise.withResolvers<void>();
  let stopping = false;
  let alive = true;

  async function watch(): Promise<void> {
    let delayMs = RESTART_MS_MIN;
    while (!stopping) {
      const since = performance.now();
      const how = await exitOf(child);
      alive = false;
      if (stopping) return;
      if (performance.now() - since > STABLE_MS) delayMs = RESTART_MS_MIN;
      const jittered = Math.round(delayMs * (0.5 + Math.random() / 2));
      log.error({ delay_ms: jittered }, `${name} ended with ${how}; starting it again`);
      await Promise.race([delay(jittered), stopped.promise]);
      delayMs = Math.min(delayMs * 2, RESTART_MS_MAX);
      if (stopping) return;
      child = launch(options, port);
      alive = true;
    }
  }
  const watching = watch();

  return {
    name,
    port,
    pid: () => child.pid,
    isAlive: () => alive,
    report: () => reportOf(name, child, alive),
    stop: async () => {
      stopping = true;
      stopped.resolve();
      child.kill('SIGTERM');
      const patience = setTimeout(() => child.kill('SIGKILL'), DRAIN_MS);
      await watching;
      clearTimeout(patience);
    },
    kill: () => {
      stopping = true;
      stopped.resolve();
      child.kill('SIGKILL');
    },
  };
}

function launch(options: PlaneOptions, port: number | undefined): ChildProcess {
  const entry = fileURLToPath(new URL(`../${options.entry}`, import.meta.url));
  const argv = ['-c', 'ulimit -c 0; exec "$@"', 'sh', process.execPath, entry];
  const child = spawn('/bin/sh', argv, {
    // A session of its own: Ctrl-C in the terminal reaches us alone, and we drain in order.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: options.environment(port),
  });
  // Sending to a child that is just ending is no error of ours; `exit` tells the rest.
  child.on('error', (err) => options.log.warn({ err }, `${options.name}: lost its channel`));
  return child;
}

async function firstPort(name: string, child: ChildProcess): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const onMessage = (message: Message): void => {
    if (message.type === 'ready') resolve(message.port);
  };
  child.on('message', onMessage);
  const failed = exitOf(child).then((how) => {
    throw new Error(`${name} ended with ${how} before it was ready`);
  });
  try {
    return await Promise.race([promise, failed]);
  } finally {
    failed.catch(() => undefined);
    child.off('message', onMessage);
  }
}

/** Settles with a word on how the process ended, also when it ended long ago or never began. */
function exitOf(child: ChildProcess): Promise<string> {
  const word = (code: number | null, signal: string | null) => signal ?? `code ${code}`;
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve(word(child.exitCode, child.signalCode));
  }
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(word(code, signal)));
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

let reports = 0;

async function reportOf(name: string, child: ChildProcess, alive: boolean): Promise<PlaneReport> {
  if (!alive || !child.connected) return { ready: false, problems: [`${name} is starting`] };
  const id = ++reports;
  const { promise, resolve } = Promise.withResolvers<PlaneReport>();
  const onMessage = (message: Message): void => {
    if (message.type === 'metrics' && message.id === id) resolve(message);
  };
  const silent = { ready: false, problems: [`${name} does not answer`] };
  const timer = setTimeout(() => resolve(silent), REPORT_MS);
  child.on('message', onMessage);
  child.send({ type: 'metrics', id }, (error) => error && resolve(silent));
  return promise.finally(() => {
    clearTimeout(timer);
    child.off('message', onMessage);
  });
}
