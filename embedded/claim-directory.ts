/**
 * Makes `DATA_DIR`, or checks that the one that is there may be used. Never changes a directory that
 * holds something else: a mistyped `DATA_DIR=/usr/lib` must leave the machine as it was.
 */
import * as fs from 'node:fs/promises';
import { dirname, join } from 'node:path';

const { chmod, mkdir, readdir, stat } = fs;

/** Every name that we give to something in `DATA_DIR`, also to what an interrupted start left. */
const OUR_NAME =
  /^(kek|lock|postgres|postgres-password|postgres-socket|socket|compile-cache)(\.|$)/;
const OUR_BINARIES = /^sallyport-postgres-/;
/** The root of a freshly formatted volume has it. */
const MOUNT_POINT_NAME = 'lost+found';
/** What tells a vault, whatever lies beside it. */
const VAULT_FILES = ['kek', join('postgres', 'PG_VERSION')];
const OTHERS = 0o077;

/**
 * Settles when `path` is a directory of ours that nobody else may enter. Throws one line for the
 * terminal, and changes nothing, when it holds other files, is open to others or is somebody else's.
 */
export async function claimDirectory(path: string): Promise<void> {
  if (await madeDirectory(path)) return;
  const { uid, mode } = await stat(path).catch((error) => fail(path, 'cannot be used', error));
  if (uid !== process.getuid?.()) {
    throw new Error(
      `DATA_DIR ${path} belongs to another user (uid ${uid}): start as that one, or use another one`,
    );
  }
  const names = await readdir(path).catch((error) => fail(path, 'cannot be read', error));
  const entries = names.filter((name) => name !== MOUNT_POINT_NAME);
  if (!(entries.every(isOurs) || (await isVault(path)))) {
    throw new Error(`DATA_DIR ${path} is not empty and not a Sallyport directory: use another one`);
  }
  if ((mode & OTHERS) === 0) return;
  if (entries.length > 0) {
    throw new Error(`DATA_DIR ${path} is open to other users: check what is there, then chmod 700`);
  }
  await chmod(path, 0o700).catch((error) => fail(path, 'cannot be closed', error));
}

/**
 * Whether a vault was begun in `path`: it has a database or a key. Throws, naming `DATA_DIR`, when
 * that cannot be found out.
 */
export async function isVault(path: string): Promise<boolean> {
  for (const name of VAULT_FILES) {
    const code = await stat(join(path, name)).then(() => undefined, codeOf);
    if (code === undefined) return true;
    if (code !== 'ENOENT' && code !== 'ENOTDIR') fail(path, 'cannot be used', { code });
  }
  return false;
}

function isOurs(name: string): boolean {
  return OUR_NAME.test(name) || OUR_BINARIES.test(name);
}

/** Makes the directory with those above it that are missing; false when it is there already. */
async function madeDirectory(path: string): Promise<boolean> {
  const missing: string[] = [];
  for (let each = path; !(await exists(each, path)); each = dirname(each)) missing.unshift(each);
  let made = false;
  // One by one: Node's recursive mkdir never ends below /proc, whose directories take no new ones.
  for (const each of missing) made = await makeOne(each, path);
  return made;
}

async function makeOne(directory: string, dataDir: string): Promise<boolean> {
  try {
    await mkdir(directory, { mode: 0o700 });
    return true;
  } catch (error) {
    // Another start was faster: then it is looked at like any other.
    return codeOf(error) === 'EEXIST' ? false : fail(dataDir, 'cannot be made', error);
  }
}

async function exists(path: string, dataDir: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? false : fail(dataDir, 'cannot be used', error);
  }
}

function fail(path: string, what: string, error: unknown): never {
  throw new Error(`DATA_DIR: ${path} ${what} (${codeOf(error) ?? 'an unknown error'})`);
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
