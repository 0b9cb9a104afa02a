/**
 * What the history is made in: a Postgres of its own that comes back when it is killed, answers that can
 * be lost on their way, all processes of an installation, two tenants that must never meet.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { readEnvironment } from '../../../config/environment.ts';
import { migrate } from '../../../control-plane/migrate.ts';
import { createDataDir, lockDataDir } from '../../../embedded/data-dir.ts';
import { createManagedTenant } from '../../../embedded/first-start.ts';
import { type Planes, startPlanes } from '../../../embedded/planes.ts';
import { startEmbeddedPostgres } from '../../../embedded/postgres.ts';
import { loadInstallation } from '../../../shared/crypto/installation.ts';
import { localKeyEncryption } from '../../../shared/crypto/local-key.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createPool, inTransaction } from '../../../shared/postgres/pool.ts';
import { REVEAL_ALL } from '../../security/planes.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { type AnswerDropper, startAnswerDropper } from './answer-dropper.ts';

export interface HistoryTenant {
  readonly id: string;
  /** In all its data, and in no answer to anybody else. */
  readonly mark: string;
  readonly key: string;
  /** A reactor that makes one token of its argument `op`. */
  readonly reactorId: string;
}

export interface World {
  readonly baseUrl: string;
  readonly tenants: readonly HistoryTenant[];
  readonly planes: Planes;
  readonly answers: AnswerDropper;
  postgresPid(): number;
  /** Superuser access that goes past the dropper. */
  readonly admin: pg.Pool;
  /** What the processes wrote. */
  output(): string;
  stop(): Promise<void>;
}

const MAKE_ONE = `module.exports = async (req) => ({
  raw: { op: req.args.op },
  tokenize: { type: 'token', data: req.args.op },
});`;

export async function createWorld(): Promise<World> {
  const root = await mkdtemp(join(tmpdir(), 'sallyport-history-'));
  const log = createLogger('test', 'silent');
  const dataDir = await createDataDir(join(root, 'data'));
  const lock = await lockDataDir(dataDir);
  const postgres = await startEmbeddedPostgres({ dataDir, log });
  const answers = await startAnswerDropper(postgres.connectionString);
  const kek = randomBytes(32);
  await migrate(postgres.connectionString, localKeyEncryption(kek));
  const managed = await createTenants(postgres.connectionString, kek);
  const written: string[] = [];
  const environment = readEnvironment({
    ...{ NODE_ENV: 'test', PORT: '0', CONTROL_PLANE_PORT: '0', LOG_LEVEL: 'info' },
    ...{ DATABASE_URL: answers.connectionString, SALLYPORT_KEK: kek.toString('base64') },
    ...{ DATA_DIR: dataDir.path, SALLYPORT_AUDIT: 'strict' },
  });
  const planes = await startPlanes(environment, process.env, log, (text) => written.push(text));
  const baseUrl = `http://localhost:${planes.dataPlane.port}`;
  const admin = new pg.Pool({ connectionString: postgres.adminConnectionString('sallyport') });
  // Killed with the server.
  admin.on('error', () => undefined);
  const tenants = await Promise.all(managed.map((tenant) => furnish(baseUrl, tenant)));
  return {
    ...{ baseUrl, tenants, planes, answers, admin },
    postgresPid: () => postgres.pid(),
    output: () => written.join(''),
    async stop() {
      await planes.stop();
      await admin.end();
      await answers.close();
      await postgres.stop('immediate');
      await lock.release();
      await rm(root, { recursive: true, force: true });
    },
  };
}

export interface ManagedTenant {
  readonly id: string;
  readonly managementKey: string;
}

export async function createTenants(
  connectionString: string,
  kek: Buffer,
): Promise<ManagedTenant[]> {
  const log = createLogger('test', 'silent');
  const pool = createPool({ connectionString, max: 1, applicationName: 'test', log });
  try {
    const installation = await loadInstallation(pool, localKeyEncryption(kek));
    const tenants: ManagedTenant[] = [];
    for (const name of ['Acme', 'Zenith']) {
      const { tenant, key } = await inTransaction(pool, (client) =>
        createManagedTenant(client, installation, { name }),
      );
      tenants.push({ id: tenant.id, managementKey: key });
    }
    return tenants;
  } finally {
    await pool.end();
  }
}

async function furnish(baseUrl: string, tenant: ManagedTenant): Promise<HistoryTenant> {
  const { managementKey: key } = tenant;
  const make = async (line: string, json: JsonObject): Promise<JsonObject> => {
    const { status, body, text } = await call(baseUrl, line, { key, json });
    if (status !== 201) throw new Error(`${line}: ${status} ${text}`);
    return body;
  };
  const [rule] = REVEAL_ALL;
  const permissions = [...(rule?.permissions ?? []), 'token:use'];
  const rules = [{ ...rule, description: 'Everything', permissions }];
  const application = await make('POST /applications', { name: 'History', type: 'private', rules });
  const reactor = await make('POST /reactors', { name: 'One', code: MAKE_ONE, configuration: {} });
  return {
    id: tenant.id,
    mark: `tenant-${tenant.id}`,
    key: String(application.key),
    reactorId: String(reactor.id),
  };
}
