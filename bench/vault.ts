/** A migrated database with one tenant and one private application that may store and read clear. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { childEnvironment, type Environment, readEnvironment } from '../config/environment.ts';
import { createApplication } from '../control-plane/applications/create-application.ts';
import { migrate } from '../control-plane/migrate.ts';
import { createTenant } from '../control-plane/tenants/create-tenant.ts';
import { type PlaneProcess, startPlane } from '../embedded/plane-process.ts';
import { type Installation, loadInstallation } from '../shared/crypto/installation.ts';
import { localKeyEncryption } from '../shared/crypto/local-key.ts';
import { createLogger } from '../shared/observability/logger.ts';
import { createPool, inTransaction, type Pool } from '../shared/postgres/pool.ts';
import type { Lab } from './lab.ts';

export interface Vault {
  readonly databaseUrl: string;
  readonly adminUrl: string;
  /** Base64. */
  readonly kek: string;
  readonly installation: Installation;
  readonly pool: Pool;
  readonly tenantId: string;
  readonly applicationId: string;
  /** API key with a rule that reveals everything, and may create. */
  readonly key: string;
}

/** What a data plane gets of the default 16, the control plane having its four. */
export const DATA_PLANE_CONNECTIONS = 12;

const REVEAL_ALL = {
  name: 'Bench',
  type: 'private' as const,
  rules: [
    {
      description: 'Everything, in clear',
      priority: 1,
      container: '/',
      transform: 'reveal' as const,
      permissions: ['token:create' as const, 'token:read' as const, 'token:use' as const],
    },
  ],
};

/** `name` becomes the name of the database: lower-case letters, digits and `_`. */
export async function createVault(lab: Lab, name: string): Promise<Vault> {
  await runSql(lab.adminUrl('postgres'), `CREATE DATABASE ${name} OWNER sallyport`);
  const databaseUrl = lab.roleUrl(name);
  const kekBytes = randomBytes(32);
  const kek = localKeyEncryption(kekBytes);
  await migrate(databaseUrl, kek);
  const pool = createPool({
    connectionString: databaseUrl,
    max: 4,
    applicationName: 'bench',
    log: createLogger('bench', 'warn'),
  });
  lab.keep({ stop: () => pool.end() });
  const installation = await loadInstallation(pool, kek);
  const { tenantId, made } = await inTransaction(pool, async (client) => {
    const { id: tenantId } = await createTenant(client, installation, { name: 'Bench' });
    return { tenantId, made: await createApplication(client, installation, tenantId, REVEAL_ALL) };
  });
  const { application, key } = made;
  const adminUrl = lab.adminUrl(name);
  const ids = { tenantId, applicationId: application.id };
  return {
    databaseUrl,
    adminUrl,
    kek: kekBytes.toString('base64'),
    installation,
    pool,
    ...ids,
    key,
  };
}

/** The data plane as `npm start` runs it, with default settings but for `own`, on a free port. */
export async function startDataPlane(
  lab: Lab,
  { databaseUrl, kek }: Vault,
  own: Partial<Environment> = {},
): Promise<{ port: number; pid: number }> {
  const settings = {
    ...readEnvironment({}),
    databaseUrl,
    kek,
    databasePoolMax: DATA_PLANE_CONNECTIONS,
    logLevel: 'warn' as const,
    ...own,
  };
  const plane: PlaneProcess = await startPlane({
    name: 'data-plane',
    entry: 'data-plane/main.ts',
    environment: (port = 0) => childEnvironment(lab.inherited, { ...settings, port }),
    log: createLogger('bench', 'warn'),
  });
  lab.keep(plane);
  const pid = plane.pid();
  if (pid === undefined) throw new Error('the data plane has ended');
  return { port: plane.port, pid };
}

/** One statement on a connection of its own, without time limits. */
export async function runSql(connectionString: string, text: string, values: unknown[] = []) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(text, values).finally(() => client.end());
}
