/**
 * The planes of an all-in-one Sallyport as child processes, seen as one: one report, one stop. The
 * control plane comes first and goes last, because the data plane relays to it.
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
  isAlive(): boolean;
  /** The metrics of all processes, summed, in Prometheus' text format. */
  metrics(): Promise<string>;
  readiness(): Promise<Readiness>;
  /** Drains the data plane, then the control plane. */
  stop(): Promise<void>;
  kill(): void;
}

/** Everything applications call runs in the data plane; managing needs few connections. */
const CONTROL_PLANE_CONNECTIONS_MAX = 4;

/**
 * Starts both with these settings, in which database and key must be given, and settles when both
 * listen. `inherited` is the environment they get besides, `onOutput` gets what they write.
 */
export async function startPlanes(
  environment: Environment,
  inherited: NodeJS.ProcessEnv,
  log: Logger,
  onOutput?: (text: string) => void,
): Promise<Planes> {
  const settings = { ...environment, bootstrapKey: undefined, metricsPort: undefined };
  const surroundings = { ...inherited, ...compileCacheEnvironment(environment.dataDir) };
  const controlPlaneShare = Math.min(
    CONTROL_PLANE_CONNECTIONS_MAX,
    Math.floor(environment.databasePoolMax / 3),
  );
  const controlPlane = await startPlane({
    name: 'control-plane',
    entry: 'control-plane/main.ts',
    log,
    onOutput,
    environment: (port = environment.controlPlanePort) =>
      childEnvironment(surroundings, {
        ...settings,
        controlPlanePort: port,
        databasePoolMax: controlPlaneShare,
      }),
  });
  const dataPlane = await startPlane({
    name: 'data-plane',
    entry: 'data-plane/main.ts',
    log,
    onOutput,
    environment: (port = environment.port) =>
      childEnvironment(surroundings, {
        ...settings,
        port,
        controlPlanePort: controlPlane.port,
        databasePoolMax: environment.databasePoolMax - controlPlaneShare,
      }),
  }).catch(async (error: unknown) => {
    await controlPlane.stop();
    throw error;
  });
  return asOne(controlPlane, dataPlane);
}

function asOne(controlPlane: PlaneProcess, dataPlane: PlaneProcess): Planes {
  const both = [dataPlane, controlPlane];
  const reports = () => Promise.all(both.map((plane) => plane.report()));
  return {
    dataPlane,
    controlPlane,
    isAlive: () => both.every((plane) => plane.isAlive()),
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
      await dataPlane.stop();
      await controlPlane.stop();
    },
    kill: () => {
      for (const plane of both) plane.kill();
    },
  };
}
