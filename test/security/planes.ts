/**
 * A whole Sallyport with one or more data planes, for tests that attack what passes between them.
 * Superuser access to the database is the attacker's.
 */
import pg from 'pg';
import { childEnvironment, readEnvironment } from '../../config/environment.ts';
import { type PlaneProcess, startPlane } from '../../embedded/plane-process.ts';
import type { AccessRule } from '../../shared/access/access-rules.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import type { TestTenant } from '../support/control-plane.ts';
import { call, type JsonObject } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';

export interface TestApplication {
  readonly id: string;
  readonly key: string;
}

export interface TestPlanes extends Pick<TestSallyport, 'addTenant' | 'tenant' | 'output'> {
  /** Addresses of the data planes, in the order they were started. */
  readonly urls: readonly string[];
  readonly controlPlane: PlaneProcess;
  readonly dataPlanes: readonly PlaneProcess[];
  /** Superuser connections to the planes' database. */
  readonly admin: pg.Pool;
  /** One more data plane, which knows nothing yet. Settles with its address. */
  addDataPlane(): Promise<string>;
  stop(): Promise<void>;
}

/** All token permissions, everywhere, in clear. */
export const REVEAL_ALL: AccessRule[] = [
  {
    priority: 1,
    container: '/',
    transform: 'reveal',
    permissions: ['token:create', 'token:read', 'token:update', 'token:delete'],
  },
];

const POOL_MAX = 6;

/** `settings` are environment variables of all planes. */
export async function startTestPlanes(settings: NodeJS.ProcessEnv = {}): Promise<TestPlanes> {
  const sallyport = await startSallyport(settings);
  const { database, planes } = sallyport;
  const environment = readEnvironment({
    NODE_ENV: 'test',
    DATABASE_URL: database.connectionString,
    SALLYPORT_KEK: database.kek,
    CONTROL_PLANE_PORT: String(planes.controlPlane.port),
    DATABASE_POOL_MAX: String(POOL_MAX),
    LOG_LEVEL: 'silent',
    ...settings,
  });
  const dataPlanes = [planes.dataPlane];
  const urls = [sallyport.baseUrl];
  const admin = new pg.Pool({ connectionString: database.adminConnectionString, max: 4 });
  // A test that cuts connections may cut these as well.
  admin.on('error', () => undefined);
  return {
    ...sallyport,
    urls,
    controlPlane: planes.controlPlane,
    dataPlanes,
    admin,
    addDataPlane: async () => {
      const plane = await startPlane({
        name: 'data-plane',
        entry: 'data-plane/main.ts',
        log: createLogger('test', 'silent'),
        environment: (port = 0) => childEnvironment({ NODE_ENV: 'test' }, { ...environment, port }),
      });
      const url = `http://localhost:${plane.port}`;
      dataPlanes.push(plane);
      urls.push(url);
      return url;
    },
    stop: async () => {
      await Promise.all(dataPlanes.map((plane) => plane.stop()));
      await admin.end();
      await sallyport.stop();
    },
  };
}

/** A new private application; in clear everywhere unless `grants` says otherwise. */
export async function createApplication(
  url: string,
  { managementKey }: Pick<TestTenant, 'managementKey'>,
  grants: JsonObject = { rules: REVEAL_ALL },
): Promise<TestApplication> {
  const json = { name: 'Tokens', type: 'private', ...grants };
  const { status, text, body } = await call<TestApplication>(url, 'POST /applications', {
    key: managementKey,
    json,
  });
  if (status !== 201) throw new Error(`no application: ${text}`);
  return { id: body.id, key: body.key };
}

/** The value of a counter, summed over the data planes that run. */
export async function counterOf(
  { dataPlanes }: Pick<TestPlanes, 'dataPlanes'>,
  name: string,
): Promise<number> {
  const reports = await Promise.all(dataPlanes.map((plane) => plane.report()));
  const found = reports.map(({ metrics }) => metrics?.find((metric) => metric.name === name));
  if (found.includes(undefined)) throw new Error(`a data plane has no metric ${name}`);
  return found.flatMap((metric) => metric?.values ?? []).reduce((sum, { value }) => sum + value, 0);
}
