/**
 * The one embedded Postgres of a test run, with a migrated template database. `test/run-all.ts` starts
 * it and passes it on; a test file that runs alone starts its own on demand. Ended by `stopTestServer`.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrate } from '../../control-plane/migrate.ts';
import { createDataDir, lockDataDir } from '../../embedded/data-dir.ts';
import { startEmbeddedPostgres } from '../../embedded/postgres.ts';
import { localKeyEncryption } from '../../shared/crypto/local-key.ts';
import { createLogger } from '../../shared/observability/logger.ts';

export interface TestServer {
  /** Superuser connection string with `DATABASE` where the name of a database goes. */
  readonly adminUrl: string;
  /** The same for the role that Sallyport uses. */
  readonly roleUrl: string;
  /** Key-encryption key of the template and all its clones, base64. */
  readonly kek: string;
  /** `DATA_DIR` of the server: what is on disk is in here. */
  readonly dataDir: string;
}

/** The variable by which a run hands its server to the test process. */
export const TEST_SERVER_VARIABLE = 'TEST_SERVER';
export const TEMPLATE_DATABASE = 'sallyport_template';
const PLACEHOLDER = 'DATABASE';

interface RunningServer {
  readonly server: TestServer;
  readonly stop: () => Promise<void>;
}

let running: Promise<RunningServer> | undefined;

/** The server of this run, started now when nobody did. */
export async function testServer(): Promise<TestServer> {
  const inherited = process.env[TEST_SERVER_VARIABLE];
  if (inherited !== undefined) return JSON.parse(inherited) as TestServer;
  running ??= startTestServer();
  return (await running).server;
}

/** Ends the server if this process started one; at the end of a run, always. */
export async function stopTestServer(): Promise<void> {
  const server = await running?.catch(() => undefined);
  running = undefined;
  await server?.stop();
}

/** The connection string of one database on the server. */
export function urlOf(template: string, database: string): string {
  return template.replace(PLACEHOLDER, database);
}

async function startTestServer(): Promise<RunningServer> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-test-'));
  const dataDir = await createDataDir(path);
  const lock = await lockDataDir(dataDir);
  const postgres = await startEmbeddedPostgres({ dataDir, log: createLogger('test', 'warn') });
  const stop = async (): Promise<void> => {
    await postgres.stop('immediate');
    await lock.release();
    await rm(path, { recursive: true, force: true });
  };
  const kek = randomBytes(32).toString('base64');
  const roleUrl = postgres.connectionString.replace('/sallyport?', `/${PLACEHOLDER}?`);
  const server = {
    adminUrl: postgres.adminConnectionString(PLACEHOLDER),
    roleUrl,
    kek,
    dataDir: path,
  };
  try {
    await makeTemplate(server);
  } catch (error) {
    await stop();
    throw error;
  }
  return { server, stop };
}

async function makeTemplate(server: TestServer): Promise<void> {
  const admin = new pg.Client({ connectionString: urlOf(server.adminUrl, 'postgres') });
  await admin.connect();
  await admin
    .query(`CREATE DATABASE ${TEMPLATE_DATABASE} OWNER sallyport`)
    .finally(() => admin.end());
  const kek = localKeyEncryption(Buffer.from(server.kek, 'base64'));
  await migrate(urlOf(server.roleUrl, TEMPLATE_DATABASE), kek);
}
