/**
 * Runs the programs of PostgreSQL: `initdb` once, then the server. The data directory and the socket
 * directory are handed to another user's server as open descriptors. No secret is ever in argv, no
 * child may leave a core dump, and no statement or value reaches the server's log.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { PostgresUser } from './operating-system-user.ts';
import type { PostgresBinaries } from './postgres-binaries.ts';

export interface PostgresPlace {
  readonly binaries: PostgresBinaries;
  readonly user: PostgresUser;
  /** Owned by `user`, mode 0700. */
  readonly dataDirectory: string;
  /** Owned by `user`, mode 0700; short enough for a socket's path. */
  readonly socketDirectory: string;
}

export interface ServerProcess {
  readonly pid: number;
  /** Settles when the process has ended, with a word on how; never rejects. */
  readonly exited: Promise<string>;
  kill(signal: NodeJS.Signals): void;
}

/** Owns the cluster. The application's own role is an ordinary one (see postgres-database.ts). */
export const SUPERUSER = 'postgres';

/** Descriptor numbers in the child: the first two after stdin, stdout and stderr. */
const DATA_DESCRIPTOR = 3;
const SOCKET_DESCRIPTOR = 4;

const SETTINGS = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  // The pools of all processes (DATABASE_POOL_MAX, 20), listeners, the command line, with room.
  max_connections: '60',
  shared_buffers: '128MB',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  timezone: 'UTC',
  // Errors (the severity below "log") quote input; the client that caused one is told anyway.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_statement: 'none',
  log_duration: 'off',
  log_min_duration_statement: '-1',
  log_parameter_max_length: '0',
  log_parameter_max_length_on_error: '0',
  log_checkpoints: 'off',
  log_line_prefix: '',
  logging_collector: 'off',
  log_destination: 'stderr',
} as const;

/** A standby says that its connections are read-only. */
const READY = /^database system is ready to accept (?:read-only )?connections$/;
/** Words of initdb, which wants a user with an entry in /etc/passwd. */
const NAMELESS = 'could not look up effective user ID';
/** How much of a failing program's last words is kept. */
const LAST_LINES = 5;

/** Creates a cluster in the empty data directory, durably. Throws with initdb's last words. */
export async function runInitdb(place: PostgresPlace, password: string): Promise<void> {
  const options = ['-U', SUPERUSER, '-E', 'UTF8', '--locale=C', '--data-checksums'];
  const child = await launch(place, {
    // initdb reads the password from a pipe: neither a file nor an argument that others could see.
    script: 'ulimit -c 0; printf "%s\\n" "$INITDB_PASSWORD" | "$@"',
    program: place.binaries.initdb,
    options: [...options, '--auth=scram-sha-256', '--pwfile=/dev/stdin'],
    environment: { INITDB_PASSWORD: password },
  });
  const lines = readLog(child, () => undefined);
  const how = await ended(child);
  if (how === 'code 0') return;
  const words = lines.join(' ');
  if (words.includes(NAMELESS)) throw new Error(namelessUser(place.user));
  throw new Error(`initdb ended with ${how}: ${words}`);
}

function namelessUser({ uid }: PostgresUser): string {
  const what = `the embedded Postgres cannot be made by uid ${uid}, which has no name`;
  return `${what}: add it to /etc/passwd, start as a user that is there, or set DATABASE_URL`;
}

/**
 * Starts the server and settles when it accepts connections. `onLine` gets each log line (severity,
 * text). Throws with the server's last words when it ends before.
 */
export async function startServer(
  place: PostgresPlace,
  onLine: (severity: string, text: string) => void,
): Promise<ServerProcess> {
  const sockets = reachable(place, SOCKET_DESCRIPTOR, place.socketDirectory);
  const settings = { ...SETTINGS, unix_socket_directories: sockets };
  const child = await launch(place, {
    script: 'ulimit -c 0; exec "$@"',
    program: place.binaries.postgres,
    options: Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    environment: {},
  });
  const { promise: ready, resolve } = Promise.withResolvers<'ready'>();
  const lines = readLog(child, (severity, text) => {
    if (READY.test(text)) resolve('ready');
    onLine(severity, text);
  });
  const exited = ended(child);
  const first = await Promise.race([ready, exited]);
  if (first !== 'ready') throw new Error(`Postgres ended with ${first}: ${lines.join(' ')}`);
  return { pid: child.pid ?? 0, exited, kill: (signal) => void child.kill(signal) };
}

interface Program {
  readonly script: string;
  readonly program: string;
  readonly options: string[];
  readonly environment: Record<string, string>;
}

async function launch(place: PostgresPlace, program: Program): Promise<ChildProcess> {
  const { user, binaries } = place;
  const data = reachable(place, DATA_DESCRIPTOR, place.dataDirectory);
  const directories = user.foreign ? [place.dataDirectory, place.socketDirectory] : [];
  const handles: FileHandle[] = [];
  try {
    for (const directory of directories) handles.push(await open(directory, 'r'));
    const argv = ['-c', program.script, 'sh', program.program, '-D', data, ...program.options];
    const child = spawn('/bin/sh', argv, {
      cwd: '/',
      // Its own session: Ctrl-C in the terminal is for us, who stop it after the planes.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', ...handles.map((handle) => handle.fd)],
      env: {
        PATH: '/usr/bin:/bin',
        LC_ALL: 'C',
        TZ: 'UTC',
        [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']:
          binaries.libraries,
        ...program.environment,
      },
      ...(user.foreign ? { uid: user.uid, gid: user.gid } : {}),
    });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    return child;
  } finally {
    await Promise.all(handles.map((handle) => handle.close()));
  }
}

/** The path by which the program reaches a directory: a magic link needs no right on those above. */
function reachable(place: PostgresPlace, descriptor: number, directory: string): string {
  return place.user.foreign ? `/proc/self/fd/${descriptor}` : directory;
}

/** Reads the log, `SEVERITY:  text` a line, and answers the last lines, which go on changing. */
function readLog(
  child: ChildProcess,
  onLine: (severity: string, text: string) => void,
): readonly string[] {
  const lines: string[] = [];
  child.stdout?.resume();
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
    lines.push(line);
    if (lines.length > LAST_LINES) lines.shift();
    const [, severity = 'LOG', text = line] = /^([A-Z]+): {1,2}(.*)$/.exec(line) ?? [];
    onLine(severity, text);
  });
  return lines;
}

function ended(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    // 'close' comes after the last line of output was read.
    child.once('close', (code, signal) => resolve(code === null ? `${signal}` : `code ${code}`));
  });
}
