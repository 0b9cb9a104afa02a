/** A control plane of its own over real HTTP, with a tenant and its management key, for one test file. */

import { createManagementApplication } from '../../control-plane/applications/create-application.ts';
import { createControlPlane } from '../../control-plane/create-control-plane.ts';
import { createTenant } from '../../control-plane/tenants/create-tenant.ts';
import { type Installation, loadInstallation } from '../../shared/crypto/installation.ts';
import { localKeyEncryption } from '../../shared/crypto/local-key.ts';
import type { AddressRange } from '../../shared/egress/ip-address.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool, inTransaction, type Pool } from '../../shared/postgres/pool.ts';
import type { Plane } from '../../shared/process/serve-plane.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

export interface TestTenant {
  readonly id: string;
  readonly managementApplicationId: string;
  readonly managementKey: string;
}

export interface TestControlPlane {
  readonly port: number;
  /** The host must be this word for clients that insist on TLS for every other. */
  readonly baseUrl: string;
  readonly database: TestDatabase;
  /** A pool of the test's own, as the role that Sallyport uses. */
  readonly pool: Pool;
  readonly installation: Installation;
  readonly plane: Plane;
  readonly tenant: TestTenant;
  addTenant(name: string): Promise<TestTenant>;
  stop(): Promise<void>;
}

/** `egressAllow`: as SALLYPORT_EGRESS_ALLOW. */
export async function startTestControlPlane(
  egressAllow: readonly AddressRange[] = [],
): Promise<TestControlPlane> {
  const database = await createTestDatabase();
  const kek = localKeyEncryption(Buffer.from(database.kek, 'base64'));
  const log = createLogger('test', 'silent');
  const connectionString = database.connectionString;
  const pool = createPool({ connectionString, max: 4, applicationName: 'test', log });
  const installation = await loadInstallation(pool, kek);
  const addTenant = (name: string) => createTestTenant(pool, installation, name);
  const tenant = await addTenant('Acme');
  const plane = createControlPlane(
    {
      databaseUrl: connectionString,
      databasePoolMax: 6,
      kek,
      redisUrl: undefined,
      testClockOffsetSeconds: undefined,
      sandboxStrict: false,
      egressAllow,
      port: 0,
      host: undefined,
    },
    log,
  );
  const port = await plane.start();
  return {
    port,
    baseUrl: `http://localhost:${port}`,
    database,
    pool,
    installation,
    plane,
    tenant,
    addTenant,
    stop: async () => {
      await plane.stop();
      await pool.end();
      await database.drop();
    },
  };
}

function createTestTenant(
  pool: Pool,
  installation: Installation,
  name: string,
): Promise<TestTenant> {
  return inTransaction(pool, async (client) => {
    const { id } = await createTenant(client, installation, { name });
    const made = await createManagementApplication(client, installation, id, { name: 'Root' });
    return { id, managementApplicationId: made.application.id, managementKey: made.key };
  });
}
