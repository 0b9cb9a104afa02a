/** A data plane in the test's own process, beside its control plane and on the same database. */
import { readEnvironment } from '../../config/environment.ts';
import { requiredSettings } from '../../config/required-settings.ts';
import { createDataPlane } from '../../data-plane/create-data-plane.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import type { Plane } from '../../shared/process/serve-plane.ts';
import type { TestControlPlane } from './control-plane.ts';

/** `settings` are environment variables. Without any it has no sandbox: many tests need none. */
export function createTestDataPlane(
  { database, port }: Pick<TestControlPlane, 'database' | 'port'>,
  settings: NodeJS.ProcessEnv = {},
): Plane {
  const environment = readEnvironment({
    NODE_ENV: 'test',
    DATABASE_URL: database.connectionString,
    SALLYPORT_KEK: database.kek,
    PORT: '0',
    CONTROL_PLANE_PORT: String(port),
    DATABASE_POOL_MAX: '8',
    SANDBOX_HOSTS: '0',
    ...settings,
  });
  const log = createLogger('test', 'silent');
  return createDataPlane({ ...environment, ...requiredSettings(environment) }, log);
}
