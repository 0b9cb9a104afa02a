/**
 * The folder of bundled modules and of the hosts' own code: made once per lock file, code and Node, found
 * again after. Every start checks each file against the index; what does not fit is built anew. Nobody
 * else on the machine may be able to write there, or hosts and scripts would run what they planted.
 */
import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { CodeFile } from './bundle-host.ts';
import type { Bundle } from './bundle-modules.ts';
import { ensurePrivateFolder, isOurs } from './private-folder.ts';

/** `modules`: what scripts write in `require` → file beside it. `sha256`: of every file there is. */
interface Index {
  readonly modules: Readonly<Record<string, string>>;
  readonly sha256: Readonly<Record<string, string>>;
}

const ROOT = join(import.meta.dirname, '../../..');
const SANDBOX = join(import.meta.dirname, '..');
const INDEX = 'index.json';

/**
 * Path of the folder with all files and their `index.json`, made when it is not there. `folder`:
 * where to keep it, for instance below DATA_DIR; otherwise beside the installed packages, or, where
 * that cannot be written, in a folder of this user in the system's temporary one. Two processes may
 * do this at once.
 */
export async function ensureModuleBundles(folder?: string): Promise<string> {
  // Node runs code by its real path, and hosts may read below one path only.
  return realpath(await ensureFolder(folder));
}

async function ensureFolder(folder?: string): Promise<string> {
  const name = `modules-${await cacheKey()}`;
  if (folder !== undefined) return ensureIn(resolve(folder), name);
  const beside = join(ROOT, 'node_modules/.cache/sallyport');
  if (await areIntact(join(beside, name))) return join(beside, name);
  try {
    return await ensureIn(beside, name);
  } catch (error) {
    if (!isRefusedWrite(error)) throw error;
    const own = join(tmpdir(), `sallyport-modules-${process.getuid?.() ?? 'user'}`);
    return ensureIn(await ensurePrivateFolder(own), name);
  }
}

async function ensureIn(folder: string, name: string): Promise<string> {
  const path = join(folder, name);
  if (await areIntact(path)) return path;
  await mkdir(folder, { recursive: true, mode: 0o755 });
  if (!(await isOurs(folder, 'directory'))) {
    throw new Error(`${folder} must be a folder that only this user can write to`);
  }
  const building = join(folder, `.building-${randomBytes(8).toString('hex')}`);
  try {
    await mkdir(building, { mode: 0o755 });
    // Loaded here: a start that finds the folder intact needs no bundler.
    const { bundleModules } = await import('./bundle-modules.ts');
    const { bundleHost } = await import('./bundle-host.ts');
    const [bundles, code] = await Promise.all([bundleModules(), bundleHost()]);
    await writeFiles(building, bundles, code);
    await moveInto(building, path);
  } finally {
    await rm(building, { recursive: true, force: true });
  }
  return path;
}

async function writeFiles(
  folder: string,
  bundles: readonly Bundle[],
  code: readonly CodeFile[],
): Promise<void> {
  const index = { modules: {} as Record<string, string>, sha256: {} as Record<string, string> };
  const modules = bundles.map(({ name, text }) => {
    const file = `${name.replaceAll(/[^A-Za-z0-9-]/g, '_')}.js`;
    index.modules[name] = file;
    return { file, text };
  });
  for (const { file, text } of [...modules, ...code]) {
    index.sha256[file] = sha256(text);
    await writePlain(join(folder, file), text);
  }
  await writePlain(join(folder, INDEX), JSON.stringify(index));
}

/** Readable by all, whatever the umask: a host reads it as somebody else. */
async function writePlain(path: string, text: string): Promise<void> {
  await writeFile(path, text, { flag: 'wx', mode: 0o644 });
  await chmod(path, 0o644);
}

/**
 * One rename, so that nobody sees half of it. Another process may have been faster, or left ruins.
 */
async function moveInto(building: string, path: string): Promise<void> {
  await chmod(building, 0o755);
  try {
    await rename(building, path);
  } catch (error) {
    if (await areIntact(path)) return;
    if (!hasCode(error, ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'])) throw error;
    const ruins = `${building}.ruins`;
    // Another may just have moved them.
    await rename(path, ruins).catch((gone: unknown) => {
      if (!hasCode(gone, ['ENOENT'])) throw gone;
    });
    await rename(building, path);
    await rm(ruins, { recursive: true, force: true });
  }
}

/**
 * Whether the bundles at `path` are all there, as written, and only we or root can have written
 * them.
 */
export async function areIntact(path: string): Promise<boolean> {
  try {
    if (!(await isOurs(dirname(path), 'directory'))) return false;
    const index: Index = JSON.parse(await readFile(join(path, INDEX), 'utf8'));
    const files = Object.keys(index.sha256);
    const expected = [...files, INDEX].sort();
    if (String((await readdir(path)).sort()) !== String(expected)) return false;
    if (files.length === 0 || !(await isOurs(path, 'directory'))) return false;
    for (const file of [INDEX, ...files]) {
      if (!(await isOurs(join(path, file), 'file'))) return false;
    }
    for (const file of files) {
      if (sha256(await readFile(join(path, file), 'utf8')) !== index.sha256[file]) return false;
    }
    return true;
  } catch {
    return false;
  }
}

/** What the bundles are made of, besides packages: what bundles, and what hosts run. */
const SOURCES = ['modules', 'host', 'code-files.ts', 'frames.ts', 'protocol.ts'];

/** Changes with anything that can change a file: packages and where they are, our code, and Node. */
async function cacheKey(): Promise<string> {
  const hash = createHash('sha256').update(`${process.version} ${process.platform}`);
  hash.update(` ${ROOT}`);
  const paths = await Promise.all(SOURCES.map((name) => filesAt(join(SANDBOX, name))));
  for (const path of [join(ROOT, 'package-lock.json'), ...paths.flat()]) {
    hash.update('\0').update(await readFile(path));
  }
  return hash.digest('hex').slice(0, 32);
}

async function filesAt(path: string): Promise<string[]> {
  if (path.endsWith('.ts')) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => join(parentPath, name)).sort();
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

function hasCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

const isRefusedWrite = (error: unknown): boolean =>
  hasCode(error, ['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOTDIR']);
