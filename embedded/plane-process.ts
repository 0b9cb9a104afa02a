/**
 * Runs a plane as a child process: started again when it dies, asked for its metrics, drained by
 * SIGTERM. Its settings go by environment, never by argv, and it cannot leave a core dump.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Logger } from '../shared/observability/logger.ts';
import type { Readiness } from '../shared/observability/metrics-server.ts';
import { planeFlags } from './plane-flags.ts';

export type MetricsAsJson = MetricObjectWithValues<MetricValue<string>>[];

/** What a plane says of itself; absent metrics mean that it did not answer. */
export interface PlaneReport {
  readonly metrics?: MetricsAsJson;
  readonly ready: boolean;
  readonly problems: readonly string[];
  readonly sandbox?: Readiness['sandbox'];
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
  /** Gets what the process writes; unset: it goes where ours goes. */
  readonly onOutput?: ((text: string) => void) | undefined;
}

type Message = { type: 'ready'; port: number } | ({ type: 'metrics'; id: number } & PlaneReport);

const RESTART_MS_MIN = 100;
const RESTART_MS_MAX = 5_000;
/** Having lived this long, a plane starts again without the delay that repeated deaths add. */
const STABLE_MS = 10_000;
/** A proxied call may take 25 s and must end before the process does. */
const DRAIN_MS = 30_000;
/** Shorter than any scraper's patience. */
const REPORT_MS = 2_000;

/** One life of a plane. */
interface Life {
  readonly child: ChildProcess;
  /** Settles with a word on how the process ended, or why it never began. */
  readonly ended: Promise<string>;
  /** Settles with its port once it listens. */
  readonly listening: Promise<number>;
  phase: 'starting' | 'serving' | 'ended';
}

/** Starts the plane and settles when it listens. Throws when it ends before. */
export async function startPlane(options: PlaneOptions): Promise<PlaneProcess> {
  const { name, log } = options;
  let life = launch(options, undefined);
  const failed = life.ended.then((how) => {
    throw new Error(`${name} ended with ${how} before it was ready`);
  });
  failed.catch(() => undefined);
  const port = await Promise.race([life.listening, failed]);
  const stopped = Promise.withResolvers<void>();
  let stopping = false;

  async function watch(): Promise<void> {
    let delayMs = RESTART_MS_MIN;
    while (!stopping) {
      const since = performance.now();
      const how = await life.ended;
      if (stopping) return;
      if (performance.now() - since > STABLE_MS) delayMs = RESTART_MS_MIN;
      const jittered = Math.round(delayMs * (0.5 + Math.random() / 2));
      log.error({ delay_ms: jittered }, `${name} ended with ${how}; starting it again`);
      await Promise.race([delay(jittered), stopped.promise]);
      delayMs = Math.min(delayMs * 2, RESTART_MS_MAX);
      if (stopping) return;
      life = launch(options, port);
      void life.listening.then(() => log.info(`${name} runs again`));
    }
  }
  const watching = watch();
  const end = (signal: NodeJS.Signals): void => {
    stopping = true;
    stopped.resolve();
    life.child.kill(signal);
  };

  return {
    name,
    port,
    pid: () => life.child.pid,
    isAlive: () => life.phase !== 'ended',
    report: () => reportOf(name, life),
    stop: async () => {
      end('SIGTERM');
      const patience = setTimeout(() => life.child.kill('SIGKILL'), DRAIN_MS);
      await watching;
      clearTimeout(patience);
    },
    kill: () => end('SIGKILL'),
  };
}

function launch(options: PlaneOptions, port: number | undefined): Life {
  const entry = fileURLToPath(new URL(`../${options.entry}`, import.meta.url));
  const argv = ['-c', 'ulimit -c 0; exec "$@"', 'sh', process.execPath, ...planeFlags(), entry];
  const output = options.onOutput === undefined ? 'inherit' : 'pipe';
  const child = spawn('/bin/sh', argv, {
    // A session of its own: Ctrl-C in the terminal reaches us alone, and we drain in order.
    detached: true,
    stdio: ['ignore', output, output, 'ipc'],
    env: options.environment(port),
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => options.onOutput?.(text));
  }
  // Sending to a child that is just ending is no error of ours; its end tells the rest.
  child.on('error', (err) => options.log.warn({ err }, `${options.name}: lost its channel`));
  return observe(child);
}

function observe(child: ChildProcess): Life {
  const listening = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<string>();
  const life: Life = {
    child,
    listening: listening.promise,
    ended: ended.promise,
    phase: 'starting',
  };
  const end = (how: string): void => {
    life.phase = 'ended';
    ended.resolve(how);
  };
  child.on('message', (message: Message) => {
    if (message.type !== 'ready' || life.phase === 'ended') return;
    life.phase = 'serving';
    listening.resolve(message.port);
  });
  child.once('exit', (code, signal) => end(signal ?? `code ${code}`));
  child.once('error', (error) => {
    if (child.pid === undefined) end(error.message);
  });
  return life;
}

let reports = 0;

async function reportOf(name: string, { child, phase }: Life): Promise<PlaneReport> {
  if (phase !== 'serving') return { ready: false, problems: [`${name} is starting`] };
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
