/**
 * The planes and the job process of an all-in-one Sallyport as child processes, seen as one: one report,
 * one stop. The control plane comes first and goes last, because the data plane relays to it.
 */
import { AggregatorRegistry } from 'prom-client';
import { childEnvironment, type Environment } from '../config/environment.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { Readiness } from '../shared/observability/metrics-server.ts';
import { compileCacheEnvironment } from './compile-cache.ts';
import { type PlaneProcess, startPlane } from './plane-process.ts';

export interface Planes {
  readonly dataPlane: PlaneProcess;
  readonly controlPlane: PlaneProcess;
  /** Listens nowhere; its port is 0. */
  readonly jobs: PlaneProcess;
  isAlive(): boolean;
  /** The metrics of all processes, summed, in Prometheus' text format. */
  metrics(): Promise<string>;
  readiness(): Promise<Readiness>;
  /** Drains the data plane and the job process, then the control plane. */
  stop(): Promise<void>;
  kill(): void;
}

/** Managing needs few connections. */
const CONTROL_PLANE_CONNECTIONS_MAX = 4;
/** Jobs wait for code and for others' servers most of the time; what they write is short. */
const JOB_CONNECTIONS_MAX = 4;
/** One for a transaction, one for what is read meanwhile. */
const CONNECTIONS_MIN = 2;
/** What the three can do with. */
export const POOL_MIN = 3 * CONNECTIONS_MIN;

/** Connections of each process; everything applications call runs in the data plane. */
function shareOut(all: number): { controlPlane: number; jobs: number; dataPlane: number } {
  const fifth = Math.max(CONNECTIONS_MIN, Math.floor(all / 5));
  const controlPlane = Math.min(CONTROL_PLANE_CONNECTIONS_MAX, fifth);
  const jobs = Math.min(JOB_CONNECTIONS_MAX, fifth);
  return { controlPlane, jobs, dataPlane: all - controlPlane - jobs };
}

/**
 * Starts all with these settings, in which database and key must be given, and settles when they
 * serve. `inherited` is the environment they get besides, `onOutput` gets what they write.
 */
export async function startPlanes(
  environment: Environment,
  inherited: NodeJS.ProcessEnv,
  log: Logger,
  onOutput?: (text: string) => void,
): Promise<Planes> {
  const settings = { ...environment, bootstrapKey: undefined, metricsPort: undefined };
  const surroundings = { ...inherited, ...compileCacheEnvironment(environment.dataDir, inherited) };
  const shares = shareOut(environment.databasePoolMax);
  const start = (
    name: string,
    entry: string,
    own: (port: number | undefined) => Partial<Environment>,
  ): Promise<PlaneProcess> =>
    startPlane({
      ...{ name, entry, log, onOutput },
      environment: (port) => childEnvironment(surroundings, { ...settings, ...own(port) }),
    });

  const controlPlane = await start('control-plane', 'control-plane/main.ts', (port) => ({
    controlPlanePort: port ?? environment.controlPlanePort,
    databasePoolMax: shares.controlPlane,
  }));
  const dataPlane = start('data-plane', 'data-plane/main.ts', (port) => ({
    port: port ?? environment.port,
    controlPlanePort: controlPlane.port,
    databasePoolMax: shares.dataPlane,
  }));
  const jobs = start('jobs', 'data-plane/jobs-main.ts', () => ({ databasePoolMax: shares.jobs }));
  const others = await Promise.allSettled([dataPlane, jobs]);
  for (const failed of others.filter((other) => other.status === 'rejected')) {
    const started = others.flatMap((other) => (other.status === 'fulfilled' ? other.value : []));
    await Promise.all([...started, controlPlane].map((plane) => plane.stop()));
    throw failed.reason;
  }
  return asOne(controlPlane, await dataPlane, await jobs);
}

function asOne(controlPlane: PlaneProcess, dataPlane: PlaneProcess, jobs: PlaneProcess): Planes {
  const all = [dataPlane, jobs, controlPlane];
  const reports = () => Promise.all(all.map((plane) => plane.report()));
  return {
    dataPlane,
    controlPlane,
    jobs,
    isAlive: () => all.every((plane) => plane.isAlive()),
    metrics: async () => {
      const metrics = (await reports()).flatMap((report) =>
        report.metrics ? [report.metrics] : [],
      );
      return AggregatorRegistry.aggregate(metrics).metrics();
    },
    readiness: async () => {
      const answers = await reports();
      // The data plane serves without the control plane, and says so itself when it cannot.
      const problems = [...new Set(answers.flatMap((report) => report.problems))];
      const sandbox = answers.find((report) => report.sandbox !== undefined)?.sandbox;
      const ready = answers.every((report) => report.ready);
      return { ready, problems, ...(sandbox === undefined ? {} : { sandbox }) };
    },
    stop: async () => {
      await Promise.all([dataPlane.stop(), jobs.stop()]);
      await controlPlane.stop();
    },
    kill: () => {
      for (const plane of all) plane.kill();
    },
  };
}
