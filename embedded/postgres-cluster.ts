/**
 * What the embedded server needs on disk: a cluster, its generated password, a directory for its
 * socket. Never touches a cluster that is there already.
 */
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DataDir, hasDatabase } from './data-dir.ts';
import type { PostgresUser } from './operating-system-user.ts';
import { type PostgresPlace, runInitdb } from './postgres-process.ts';

const { chmod, chown, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } = fs;

/** The major version of the binaries; a cluster of another one needs a dump and restore. */
const MAJOR_VERSION = '18';
/** A password of 256 bits: local users guess at it, over the socket, without a limit. */
const PASSWORD_BYTES = 32;
/** The path of a socket ends with a NUL in 108 bytes on Linux, in 104 elsewhere (unix(7)). */
const SOCKET_PATH_BYTES_MAX = process.platform === 'linux' ? 107 : 103;
const SOCKET_NAME = '.s.PGSQL.5432';
const TEMPORARY_PREFIX = 'sallyport-socket-';

/** Creates the cluster on the first start and answers the password of its roles. */
export async function prepareCluster(
  dataDir: DataDir,
  place: Omit<PostgresPlace, 'dataDirectory'>,
): Promise<string> {
  if (await hasDatabase(dataDir)) return checkedPassword(dataDir, place.user);
  const password = randomBytes(PASSWORD_BYTES).toString('base64url');
  await writeFile(dataDir.postgresPassword, password, { mode: 0o600, flush: true });
  // A start that was interrupted in initdb leaves only this draft behind.
  const draft = `${dataDir.postgres}.new`;
  await rm(draft, { recursive: true, force: true });
  await createDirectoryOf(draft, place.user);
  await runInitdb({ ...place, dataDirectory: draft }, password);
  await rename(draft, dataDir.postgres);
  return password;
}

async function checkedPassword(dataDir: DataDir, user: PostgresUser): Promise<string> {
  const version = (await readFile(join(dataDir.postgres, 'PG_VERSION'), 'utf8')).trim();
  if (version !== MAJOR_VERSION) {
    throw new Error(`${dataDir.postgres} is of Postgres ${version}; this is ${MAJOR_VERSION}`);
  }
  if ((await stat(dataDir.postgres)).uid !== user.uid) {
    throw new Error(
      `${dataDir.postgres} belongs to another user: start as that one, or give it to uid ${user.uid}`,
    );
  }
  return readPassword(dataDir);
}

/** The password of the roles. Throws when there is none: without it nobody gets in. */
export async function readPassword(dataDir: DataDir): Promise<string> {
  try {
    return await readFile(dataDir.postgresPassword, 'utf8');
  } catch (cause) {
    throw new Error(`cannot read the database's password: restore ${dataDir.postgresPassword}`, {
      cause,
    });
  }
}

/**
 * The directory of the server's socket: in `DATA_DIR`, or where its path would be too long for a socket
 * a fresh temporary one. Leaves word of it in `DATA_DIR` for the command line.
 */
export async function prepareSocketDirectory(
  dataDir: DataDir,
  user: PostgresUser,
): Promise<string> {
  await removeTemporary(await readSocketDirectory(dataDir));
  let directory = join(dataDir.path, 'socket');
  if (Buffer.byteLength(join(directory, SOCKET_NAME)) > SOCKET_PATH_BYTES_MAX) {
    directory = await mkdtemp(join(tmpdir(), TEMPORARY_PREFIX));
  }
  await createDirectoryOf(directory, user);
  const draft = `${dataDir.postgresSocket}.new`;
  await writeFile(draft, directory, { mode: 0o600 });
  await rename(draft, dataDir.postgresSocket);
  return directory;
}

/** Where the running server's socket is, or was; `undefined` before the first start. */
export async function readSocketDirectory(dataDir: DataDir): Promise<string | undefined> {
  return readFile(dataDir.postgresSocket, 'utf8').catch(() => undefined);
}

/** Removes a socket directory that was made outside of `DATA_DIR`. */
export async function removeTemporary(directory: string | undefined): Promise<void> {
  if (directory?.startsWith(join(tmpdir(), TEMPORARY_PREFIX)) !== true) return;
  await rm(directory, { recursive: true, force: true });
}

async function createDirectoryOf(path: string, user: PostgresUser): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
  if (user.foreign) await chown(path, user.uid, user.gid);
}
