/** From where a person counts the paths of a command line. */
import { dirname, resolve } from 'node:path';

/** Where npm runs the scripts of our package.json, from wherever in the clone it was called. */
const CLONE = dirname(import.meta.dirname);
/** As in package.json. */
const NPM_SCRIPT = 'sallyport';
const STANDARD_INPUT = '-';

/**
 * Makes a path of the command line absolute, but for `-`, which is none. npm tells in INIT_CWD where it
 * was called. A script of another project that calls us inherits INIT_CWD, too, and means its own folder.
 */
export function callersPath(
  path: string,
  { npm_lifecycle_event, INIT_CWD }: NodeJS.ProcessEnv,
): string {
  if (path === STANDARD_INPUT) return path;
  const isByNpm = npm_lifecycle_event === NPM_SCRIPT && process.cwd() === CLONE;
  return isByNpm && INIT_CWD ? resolve(INIT_CWD, path) : resolve(path);
}
