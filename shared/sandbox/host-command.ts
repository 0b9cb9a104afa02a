/**
 * The command line of a sandbox host: no environment, no core dump, read access to our own code only,
 * and a network namespace of its own where the system allows it. A host that starts as root gives that
 * up before its first script, not at exec: the code may lie where only root can read it, as in /root.
 */
import { spawnSync } from 'node:child_process';
import { readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { HOST_FILE } from './code-files.ts';

/** Not `nobody`, who owns the embedded database; needs no entry in /etc/passwd. */
export const UNPRIVILEGED_ID = 65_533;
const ROOT = join(import.meta.dirname, '../..');
const PROBE_MS_MAX = 5_000;
/**
 * Young generations of 4 MiB halves, of isolates as of the host's own threads: with V8's default a fresh
 * context costs 15 % more CPU, with 8 an isolate that is busy keeps 31 MiB instead of 24. Collected by
 * the thread itself: what helpers do of so little is less than waking them, 4 % of a fresh context.
 */
const NODE_OPTIONS = [
  ...['--max-semi-space-size=4', '--no-parallel-scavenge'],
  ...['--no-node-snapshot', '--permission', '--allow-addons', '--allow-worker'],
  ...['--disable-warning=SecurityWarning', '--disable-warning=ExperimentalWarning'],
];
/** isolated-vm's loader asks which C library there is by looking at it. */
const ALPINE_MARK = '/etc/alpine-release';

export interface Isolation {
  /** Put before the program. */
  readonly prefix: readonly string[];
  readonly network: 'none' | 'shared';
}

/** How this machine can cut a host off, tried out by doing it once. Never throws. */
export function findIsolation(): Isolation {
  const asRoot = process.getuid?.() === 0;
  const candidates = asRoot
    ? [['unshare', '--net', '--']]
    : [
        ['unshare', '--map-current-user', '--net', '--'],
        ['unshare', '-rn', '--'],
      ];
  const own = networkOf('self');
  for (const prefix of own === undefined ? [] : candidates) {
    const [program = '', ...options] = prefix;
    const probe = spawnSync(program, [...options, 'readlink', '/proc/self/ns/net'], {
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      timeout: PROBE_MS_MAX,
      encoding: 'utf8',
    });
    if (probe.status === 0 && probe.stdout.trim() !== own) {
      return { prefix, network: 'none' };
    }
  }
  return { prefix: [], network: 'shared' };
}

/** The network namespace of a process; `undefined` where it cannot be seen. */
export function networkOf(pid: number | 'self'): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
}

/** Of the installation in `root`. Packages may lie elsewhere: what is loaded is asked for by its real path. */
export function readablePaths(root: string): string[] {
  const packages = join(root, 'node_modules');
  const places = new Set([packages, realpathSync(packages)]);
  return [...[...places].map((place) => `${place}/`), join(root, 'package.json')];
}

/** Program and arguments of a host with `thread_count` threads; `modules_folder`: its code, too. */
export function hostCommand(
  isolation: Isolation,
  thread_count: number,
  modules_folder: string,
): [string, string[]] {
  const node = realpathSync(process.execPath);
  const readable = [...readablePaths(ROOT), ALPINE_MARK, `${modules_folder}/`].map(
    (path) => `--allow-fs-read=${path}`,
  );
  const host = join(modules_folder, HOST_FILE);
  const identity = process.getuid?.() === 0 ? [String(UNPRIVILEGED_ID)] : [];
  const values = [String(thread_count), modules_folder, ...identity];
  const program = [node, ...NODE_OPTIONS, ...readable, host, ...values];
  // The shell is there for `ulimit`: a core dump would hold arguments and results.
  return ['/bin/sh', ['-c', 'ulimit -c 0 && exec "$@"', 'sh', ...isolation.prefix, ...program]];
}
