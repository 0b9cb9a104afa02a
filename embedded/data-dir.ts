/**
 * The layout of `DATA_DIR` and its one owner. Only the process that holds the lock may start Postgres
 * on it, make a key or change what is there.
 */
import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { claimDirectory } from './claim-directory.ts';
import {
  ownIdentity,
  type ProcessIdentity,
  processScope,
  processStart,
} from './process-identity.ts';

const { link, readFile, rename, rm, stat, utimes } = fs;

export interface DataDir {
  readonly path: string;
  /** Postgres' own directory; it exists once initdb was completed. */
  readonly postgres: string;
  readonly postgresPassword: string;
  /** A file with the path of the directory that holds the server's socket. */
  readonly postgresSocket: string;
  readonly kek: string;
  readonly lock: string;
}

export interface DataDirLock {
  /** Settles when another process took the directory over although this one still ran. */
  readonly lost: Promise<void>;
  release(): Promise<void>;
}

/** Somebody else uses the directory; the message is fit for the terminal. */
export class DataDirBusyError extends Error {
  override readonly name = 'DataDirBusyError';
}

interface LockText extends ProcessIdentity {
  readonly nonce: string;
}

/** The owner shows that it lives by touching the lock. */
const TOUCH_MS = 1_000;
/** An owner that cannot be looked up (another container, another machine) and did not touch the lock
 * for this long is gone: several times TOUCH_MS, so that a busy machine does not lose its lock. */
const SILENT_MS = 5_000;
/** A take-over lasts milliseconds; one that is older was interrupted. */
const TAKEOVER_MS = 10_000;

/** The paths of everything in `path`; touches nothing. */
export function dataDirAt(path: string): DataDir {
  return {
    path,
    postgres: join(path, 'postgres'),
    postgresPassword: join(path, 'postgres-password'),
    postgresSocket: join(path, 'postgres-socket'),
    kek: join(path, 'kek'),
    lock: join(path, 'lock'),
  };
}

/** Creates the directory where it is missing, closed to everybody else; see `claimDirectory`. */
export async function createDataDir(path: string): Promise<DataDir> {
  await claimDirectory(path);
  return dataDirAt(path);
}

/** Whether a database was ever completed here. */
export async function hasDatabase(dataDir: DataDir): Promise<boolean> {
  return (await stat(join(dataDir.postgres, 'PG_VERSION')).catch(() => undefined)) !== undefined;
}

/**
 * Makes this process the one owner of the directory. Throws DataDirBusyError when another lives; the
 * lock of a dead one is taken over, also when its process id was given to another process since.
 */
export async function lockDataDir(dataDir: DataDir): Promise<DataDirLock> {
  const own: LockText = { ...ownIdentity(), nonce: randomUUID() };
  const draft = `${dataDir.lock}.${own.nonce}`;
  const options = { mode: 0o600, flag: 'wx', flush: true };
  await fs
    .writeFile(draft, JSON.stringify(own), options)
    .catch(({ code }: NodeJS.ErrnoException) => {
      throw new Error(`DATA_DIR: ${dataDir.path} cannot be written (${code})`);
    });
  try {
    // A link appears whole and only where nothing is: no moment with an empty lock file.
    if (!(await created(draft, dataDir.lock))) await takeOver(dataDir, draft);
  } finally {
    await rm(draft, { force: true });
  }
  return hold(dataDir, own.nonce);
}

async function created(draft: string, target: string): Promise<boolean> {
  try {
    await link(draft, target);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function takeOver(dataDir: DataDir, draft: string): Promise<void> {
  const guard = `${dataDir.lock}.takeover`;
  const interrupted = await stat(guard).catch(() => undefined);
  if (interrupted && Date.now() - interrupted.mtimeMs > TAKEOVER_MS)
    await rm(guard, { force: true });
  if (!(await created(draft, guard))) throw new DataDirBusyError(busy(dataDir, 'is being started'));
  try {
    const found = await readLock(dataDir.lock);
    if (found !== undefined && (await isAlive(dataDir.lock, found))) {
      throw new DataDirBusyError(busy(dataDir, `is in use by process ${found.pid}`));
    }
    const copy = `${draft}.own`;
    await link(draft, copy);
    await rename(copy, dataDir.lock);
  } finally {
    await rm(guard, { force: true });
  }
}

function busy(dataDir: DataDir, what: string): string {
  return `DATA_DIR ${dataDir.path} ${what}: stop that Sallyport first, or use another DATA_DIR`;
}

async function readLock(path: string): Promise<LockText | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as LockText;
  } catch {
    // Gone, or cut short by a power failure: then its process is gone too.
    return undefined;
  }
}

async function isAlive(path: string, found: LockText): Promise<boolean> {
  if (found.scope === processScope()) return processStart(found.pid) === found.started;
  const before = await stat(path).catch(() => undefined);
  if (before === undefined) return false;
  const remaining = SILENT_MS - (Date.now() - before.mtimeMs);
  if (remaining <= 0) return false;
  await new Promise((resolve) => setTimeout(resolve, Math.min(remaining, SILENT_MS)));
  const after = await stat(path).catch(() => undefined);
  return after !== undefined && after.mtimeMs !== before.mtimeMs;
}

function hold(dataDir: DataDir, nonce: string): DataDirLock {
  const { promise: lost, resolve } = Promise.withResolvers<void>();
  const isOurs = async () => (await readLock(dataDir.lock))?.nonce === nonce;
  const timer = setInterval(async () => {
    const now = new Date();
    if (await isOurs()) await utimes(dataDir.lock, now, now).catch(() => undefined);
    else resolve();
  }, TOUCH_MS);
  timer.unref();
  return {
    lost,
    release: async () => {
      clearInterval(timer);
      if (await isOurs()) await rm(dataDir.lock, { force: true });
    },
  };
}
