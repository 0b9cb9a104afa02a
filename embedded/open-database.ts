/**
 * The database and the key-encryption key that a start or a command works with, whichever way they
 * are given: by environment, or embedded in `DATA_DIR`. Never makes a key for a database that has one.
 */
import type { Environment } from '../config/environment.ts';
import { migrate } from '../control-plane/migrate.ts';
import { type Installation, loadInstallation } from '../shared/crypto/installation.ts';
import { type KeyEncryption, localKeyEncryption, parseKek } from '../shared/crypto/local-key.ts';
import type { Logger } from '../shared/observability/logger.ts';
import { createPool, endPool, type Pool } from '../shared/postgres/pool.ts';
import { checkReachable } from './check-start.ts';
import { isVault } from './claim-directory.ts';
import {
  createDataDir,
  type DataDir,
  DataDirBusyError,
  type DataDirLock,
  dataDirAt,
  hasDatabase,
  lockDataDir,
} from './data-dir.ts';
import {
  createLocalKek,
  isSealed,
  readLocalKek,
  refuseMissingKek,
  refuseWrongKek,
} from './local-kek.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './postgres.ts';
import { runningConnectionString } from './postgres-database.ts';

export interface OpenDatabase {
  /** As `DATABASE_URL`. */
  readonly connectionString: string;
  /** As `SALLYPORT_KEK`. */
  readonly kek: string;
  /** The key file in use, for the operator to back up; unset when the key was given. */
  readonly kekFile?: string;
  /** Set when the server is ours and runs as long as this process. */
  readonly postgres?: EmbeddedPostgres;
  /** Settles when `DATA_DIR` was taken by somebody else: stop at once. */
  readonly lost?: Promise<void>;
  readonly keyEncryption: KeyEncryption;
  /** Brings the schema up to date; answers the names of the migrations that ran. */
  migrate(): Promise<string[]>;
  /** Stops what was started here and gives `DATA_DIR` back. */
  close(mode?: 'fast' | 'immediate'): Promise<void>;
}

/** Runs `work` with a few connections and the installation's secrets, for a start or a command. */
export async function withInstallation<T>(
  database: OpenDatabase,
  log: Logger,
  work: (pool: Pool, installation: Installation) => Promise<T>,
): Promise<T> {
  const pool = createPool({
    connectionString: database.connectionString,
    max: 1,
    applicationName: 'sallyport-start',
    log,
  });
  try {
    const installation = await loadInstallation(pool, database.keyEncryption).catch((error) =>
      refuseWrongKek(database, error),
    );
    return await work(pool, installation);
  } finally {
    await endPool(pool);
  }
}

/**
 * Opens the database for its owner. `check` is asked once `DATA_DIR` is ours and before anything is
 * made. Throws DataDirBusyError when `DATA_DIR` is in use.
 */
export async function openDatabase(
  environment: Environment,
  log: Logger,
  check: () => Promise<void> = async () => undefined,
): Promise<OpenDatabase> {
  if (environment.databaseUrl !== undefined) {
    await check();
    return openGiven(environment, environment.databaseUrl);
  }
  const dataDir = await createDataDir(environment.dataDir);
  const lock = await lockDataDir(dataDir);
  try {
    await check();
    return await openEmbedded(environment, dataDir, lock, log);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * Like `openDatabase`, but for a command: works beside a running Sallyport instead of refusing to,
 * and never makes a vault, which a mistyped setting would leave behind.
 */
export async function openSharedDatabase(
  environment: Environment,
  log: Logger,
): Promise<OpenDatabase> {
  await refuseMissingVault(environment);
  try {
    return await openDatabase(environment, log);
  } catch (error) {
    if (!(error instanceof DataDirBusyError)) throw error;
    return joinRunning(environment, dataDirAt(environment.dataDir), error);
  }
}

async function refuseMissingVault({ databaseUrl, dataDir }: Environment): Promise<void> {
  if (databaseUrl === undefined) {
    // A key alone belongs to a database that `DATABASE_URL` names and that was not given here.
    if ((await isVault(dataDir)) && (await hasDatabase(dataDirAt(dataDir)))) return;
    throw new Error(`no vault in ${dataDir}: start Sallyport once, or set DATA_DIR`);
  }
  await checkReachable('DATABASE_URL', databaseUrl);
  if (await isSealed(databaseUrl)) return;
  throw new Error('no vault in the database of DATABASE_URL: start Sallyport once, or set another');
}

async function openGiven(environment: Environment, connectionString: string) {
  const { databaseDirectUrl } = environment;
  await checkReachable('DATABASE_URL', connectionString);
  if (databaseDirectUrl) await checkReachable('DATABASE_DIRECT_URL', databaseDirectUrl);
  const dataDir = dataDirAt(environment.dataDir);
  const given = environment.kek ?? (await readLocalKek(dataDir));
  if (given === undefined && (await isSealed(connectionString))) refuseMissingKek(dataDir);
  const kek = given ?? (await createLocalKek(await createDataDir(environment.dataDir)));
  const file = environment.kek === undefined ? { kekFile: dataDir.kek } : {};
  return { ...opened(connectionString, kek), ...file };
}

async function openEmbedded(
  environment: Environment,
  dataDir: DataDir,
  lock: DataDirLock,
  log: Logger,
): Promise<OpenDatabase> {
  const given = environment.kek ?? (await readLocalKek(dataDir));
  if (given === undefined && (await hasDatabase(dataDir))) refuseMissingKek(dataDir);
  const kek = given ?? (await createLocalKek(dataDir));
  const file = environment.kek === undefined ? { kekFile: dataDir.kek } : {};
  const postgres = await startEmbeddedPostgres({ dataDir, log });
  return {
    ...opened(postgres.connectionString, kek),
    ...file,
    postgres,
    lost: lock.lost,
    close: async (mode = 'fast') => {
      await postgres.stop(mode);
      await lock.release();
    },
  };
}

/** A running Sallyport has the lock: its server is reached through its socket. */
async function joinRunning(
  environment: Environment,
  dataDir: DataDir,
  busy: DataDirBusyError,
): Promise<OpenDatabase> {
  const connectionString = await runningConnectionString(dataDir);
  const kek = environment.kek ?? (await readLocalKek(dataDir));
  // It holds the lock but has not come far enough to be worked with.
  if (connectionString === undefined || kek === undefined) throw busy;
  return opened(connectionString, kek);
}

function opened(connectionString: string, kek: string): OpenDatabase {
  const bytes = parseKek(kek);
  if (bytes === undefined) throw new Error('the key-encryption key is not 32 bytes in base64');
  const keyEncryption = localKeyEncryption(bytes);
  return {
    connectionString,
    kek,
    keyEncryption,
    migrate: () => migrate(connectionString, keyEncryption),
    close: async () => undefined,
  };
}
