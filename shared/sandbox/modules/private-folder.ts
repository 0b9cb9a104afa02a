/**
 * Folders and files that nobody else on the machine can change: code that will run is kept there.
 */
import { lstatSync, type Stats } from 'node:fs';
import { lstat, mkdir } from 'node:fs/promises';

const WRITABLE_BY_OTHERS = 0o022;
const ANY_OF_OTHERS = 0o077;

type Kind = 'directory' | 'file';

/** Whether only we or root can have written what is at `path`. A symbolic link is neither kind. */
export async function isOurs(path: string, kind: Kind): Promise<boolean> {
  return areOurs(await lstat(path), kind);
}

/** The same at once, for right before something is run; `false` also when there is nothing. */
export function isOursNow(path: string, kind: Kind): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found !== undefined && areOurs(found, kind);
}

function areOurs(found: Stats, kind: Kind): boolean {
  const isKind = kind === 'file' ? found.isFile() : found.isDirectory();
  const owners = [0, process.getuid?.()];
  return isKind && owners.includes(found.uid) && (found.mode & WRITABLE_BY_OTHERS) === 0;
}

/**
 * Makes a folder that is ours alone in one that everybody writes to, or finds it again. Throws when
 * somebody has taken its name.
 */
export async function ensurePrivateFolder(path: string): Promise<string> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  const found = await lstat(path);
  const isOwn = found.isDirectory() && found.uid === (process.getuid?.() ?? found.uid);
  if (!isOwn || (found.mode & ANY_OF_OTHERS) !== 0) {
    throw new Error(`${path} is not a folder that only this user can read and write; remove it`);
  }
  return path;
}
