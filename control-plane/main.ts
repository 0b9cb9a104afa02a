/** The control plane as a process: settings from the environment, then serve until a signal. */
import { readEnvironment } from '../config/environment.ts';
import { requiredSettings } from '../config/required-settings.ts';
import { createLogger } from '../shared/observability/logger.ts';
import { endOnCrash, endOnFailedStart } from '../shared/process/end-on-crash.ts';
import { hasParent } from '../shared/process/parent-link.ts';
import { retryUntilAvailable } from '../shared/process/retry-until-available.ts';
import { servePlane } from '../shared/process/serve-plane.ts';
import { createControlPlane } from './create-control-plane.ts';
import { migrate } from './migrate.ts';

/** The data plane's is 9090, so that both can run on one machine. */
const METRICS_PORT_DEFAULT = 9091;

async function main(): Promise<void> {
  const environment = readEnvironment(process.env);
  const log = createLogger('control-plane', environment.logLevel);
  endOnCrash(log);
  const { databaseUrl, directUrl, kek } = requiredSettings(environment);
  const plane = createControlPlane(
    {
      databaseUrl,
      databasePoolMax: environment.databasePoolMax,
      kek,
      redisUrl: environment.redisUrl,
      testClockOffsetSeconds: environment.testClockOffsetSeconds,
      sandboxStrict: environment.sandboxStrict,
      egressAllow: environment.egressAllow,
      port: environment.controlPlanePort,
      host: hasParent() ? '127.0.0.1' : undefined,
    },
    log,
  );
  await servePlane(plane, {
    log,
    metricsPort: environment.metricsPort ?? METRICS_PORT_DEFAULT,
    metricsHost: environment.metricsHost,
    async prepareAlone() {
      const migrations = await retryUntilAvailable(() => migrate(directUrl, kek), log);
      for (const migration of migrations) log.info({ migration }, 'migrated');
    },
  });
}

await main().catch(endOnFailedStart('control plane'));
