/**
 * Control plane and data planes as processes of their own, on a database of their own, for tests that
 * attack what passes between them. Superuser access to the database is the attacker's.
 */
import pg from 'pg';
import { childEnvironment, readEnvironment } from '../../config/environment.ts';
import { createManagedTenant } from '../../embedded/first-start.ts';
import { type PlaneProcess, startPlane } from '../../embedded/plane-process.ts';
import type { AccessRule } from '../../shared/access/access-rules.ts';
import { loadInstallation } from '../../shared/crypto/installation.ts';
import { localKeyEncryption } from '../../shared/crypto/local-key.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool, inTransaction } from '../../shared/postgres/pool.ts';
import type { TestTenant } from '../support/control-plane.ts';
import { call, type JsonObject } from '../support/http-call.ts';
import { createTestDatabase } from '../support/postgres.ts';

export interface TestApplication {
  readonly id: string;
  readonly key: string;
}

export interface TestPlanes {
  /** Addresses of the data planes, in the order they were started. */
  readonly urls: readonly string[];
  readonly controlPlane: PlaneProcess;
  readonly dataPlanes: readonly PlaneProcess[];
  /** Superuser connections to the planes' database. */
  readonly admin: pg.Pool;
  addTenant(name: string): Promise<TestTenant>;
  /** One more data plane, which knows nothing yet. Settles with its address. */
  addDataPlane(): Promise<string>;
  stop(): Promise<void>;
}

const TOKEN_PERMISSIONS = ['token:create', 'token:read', 'token:update', 'token:delete'] as const;

/** All token permissions, everywhere, in clear. */
export const REVEAL_ALL: AccessRule[] = [
  { priority: 1, container: '/', transform: 'reveal', permissions: [...TOKEN_PERMISSIONS] },
];

export async function startTestPlanes(settings: { redisUrl?: string } = {}): Promise<TestPlanes> {
  const database = await createTestDatabase();
  const log = createLogger('test', 'silent');
  const environment = readEnvironment({
    NODE_ENV: 'test',
    DATABASE_URL: database.connectionString,
    SALLYPORT_KEK: database.kek,
    REDIS_URL: settings.redisUrl,
    PORT: '0',
    CONTROL_PLANE_PORT: '0',
    DATABASE_POOL_MAX: '6',
    LOG_LEVEL: 'silent',
  });
  const start = (name: string, controlPlanePort: number) => {
    const ports = (port = 0) =>
      name === 'control-plane' ? { controlPlanePort: port } : { port, controlPlanePort };
    return startPlane({
      name,
      entry: `${name}/main.ts`,
      log,
      environment: (port) =>
        childEnvironment({ NODE_ENV: 'test' }, { ...environment, ...ports(port) }),
    });
  };
  const controlPlane = await start('control-plane', 0);
  const dataPlanes: PlaneProcess[] = [];
  const urls: string[] = [];
  const admin = new pg.Pool({ connectionString: database.adminConnectionString, max: 4 });
  const addDataPlane = async (): Promise<string> => {
    const plane = await start('data-plane', controlPlane.port);
    const url = `http://localhost:${plane.port}`;
    dataPlanes.push(plane);
    urls.push(url);
    return url;
  };
  await addDataPlane();
  return {
    urls,
    controlPlane,
    dataPlanes,
    admin,
    addDataPlane,
    addTenant: (name) => createTestTenant(database, name),
    stop: async () => {
      await Promise.all(dataPlanes.map((plane) => plane.stop()));
      await controlPlane.stop();
      await admin.end();
      await database.drop();
    },
  };
}

async function createTestTenant(
  { connectionString, kek }: { connectionString: string; kek: string },
  name: string,
): Promise<TestTenant> {
  const log = createLogger('test', 'silent');
  const pool = createPool({ connectionString, max: 1, applicationName: 'test', log });
  try {
    const secrets = await loadInstallation(pool, localKeyEncryption(Buffer.from(kek, 'base64')));
    const made = await inTransaction(pool, (client) =>
      createManagedTenant(client, secrets, { name }),
    );
    const { tenant, application, key } = made;
    return { id: tenant.id, managementApplicationId: application.id, managementKey: key };
  } finally {
    await pool.end();
  }
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
