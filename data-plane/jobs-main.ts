/** The job process by itself: settings from the environment, then run jobs until a signal. */
import { readEnvironment } from '../config/environment.ts';
import { requiredSettings } from '../config/required-settings.ts';
import { createLogger } from '../shared/observability/logger.ts';
import { endOnCrash, endOnFailedStart } from '../shared/process/end-on-crash.ts';
import { servePlane } from '../shared/process/serve-plane.ts';
import { createJobProcess } from './create-job-process.ts';

/** The planes' are 9090 and 9091, so that all can run on one machine. */
const METRICS_PORT_DEFAULT = 9092;

async function main(): Promise<void> {
  const environment = readEnvironment(process.env);
  const log = createLogger('jobs', environment.logLevel);
  endOnCrash(log);
  const jobs = createJobProcess({ ...environment, ...requiredSettings(environment) }, log);
  const { metricsHost, metricsPort = METRICS_PORT_DEFAULT } = environment;
  await servePlane(jobs, { log, metricsPort, metricsHost });
}

await main().catch(endOnFailedStart('jobs'));
