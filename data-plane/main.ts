/** The data plane as a process: settings from the environment, then serve until a signal. */
import { readEnvironment } from '../config/environment.ts';
import { requiredSettings } from '../config/required-settings.ts';
import { createLogger } from '../shared/observability/logger.ts';
import { endOnCrash, endOnFailedStart } from '../shared/process/end-on-crash.ts';
import { servePlane } from '../shared/process/serve-plane.ts';
import { createDataPlane } from './create-data-plane.ts';

const METRICS_PORT_DEFAULT = 9090;

async function main(): Promise<void> {
  const environment = readEnvironment(process.env);
  const log = createLogger('data-plane', environment.logLevel);
  endOnCrash(log);
  const plane = createDataPlane({ ...environment, ...requiredSettings(environment) }, log);
  const { metricsHost, metricsPort = METRICS_PORT_DEFAULT } = environment;
  await servePlane(plane, { log, metricsPort, metricsHost });
}

await main().catch(endOnFailedStart('data plane'));
