/**
 * A whole Sallyport for a test: both planes as child processes on free ports, wired as `npm start` does
 * it, on a database of its own with one tenant. What the processes write is kept for the test to read.
 */
import { readEnvironment } from '../../config/environment.ts';
import { createManagedTenant } from '../../embedded/first-start.ts';
import { type Planes, startPlanes } from '../../embedded/planes.ts';
import { loadInstallation } from '../../shared/crypto/installation.ts';
import { localKeyEncryption, parseKek } from '../../shared/crypto/local-key.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool, inTransaction } from '../../shared/postgres/pool.ts';
import type { TestTenant } from './control-plane.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

export interface TestSallyport {
  /** Address of the data plane, which relays to the control plane: what applications are given. */
  readonly baseUrl: string;
  readonly tenant: TestTenant;
  readonly database: TestDatabase;
  readonly planes: Planes;
  /** Everything both processes wrote so far; LOG_LEVEL is `trace` unless the test says otherwise. */
  output(): string;
  /** Another tenant, for attacks across the border. */
  addTenant(name: string): Promise<TestTenant>;
  stop(): Promise<void>;
}

/** Starts one; `settings` are environment variables, e.g. `REDIS_URL`. Call `stop` in `after`. */
export async function startSallyport(settings: NodeJS.ProcessEnv = {}): Promise<TestSallyport> {
  const database = await createTestDatabase();
  const tenant = await createTestTenant(database, 'Acme');
  const written: string[] = [];
  const environment = readEnvironment({
    NODE_ENV: 'test',
    PORT: '0',
    CONTROL_PLANE_PORT: '0',
    DATABASE_URL: database.connectionString,
    SALLYPORT_KEK: database.kek,
    LOG_LEVEL: 'trace',
    ...settings,
  });
  const inherited = { ...process.env, NODE_ENV: 'test' };
  const log = createLogger('test', 'silent');
  const onOutput = (text: string): void => void written.push(text);
  const planes = await startPlanes(environment, inherited, log, onOutput).catch(async (cause) => {
    await database.drop();
    throw new Error(`Sallyport did not start: ${written.join('')}`, { cause });
  });
  const scheme = environment.tlsCertFile === undefined ? 'http' : 'https';
  return {
    baseUrl: `${scheme}://localhost:${planes.dataPlane.port}`,
    tenant,
    database,
    planes,
    output: () => written.join(''),
    addTenant: (name) => createTestTenant(database, name),
    stop: async () => {
      await planes.stop();
      await database.drop();
    },
  };
}

async function createTestTenant(database: TestDatabase, name: string): Promise<TestTenant> {
  const log = createLogger('test', 'silent');
  const { connectionString } = database;
  const pool = createPool({ connectionString, max: 1, applicationName: 'test', log });
  try {
    const kek = localKeyEncryption(parseKek(database.kek) ?? Buffer.alloc(0));
    const installation = await loadInstallation(pool, kek);
    const { tenant, application, key } = await inTransaction(pool, (client) =>
      createManagedTenant(client, installation, { name }),
    );
    return { id: tenant.id, managementApplicationId: application.id, managementKey: key };
  } finally {
    await pool.end();
  }
}
