/**
 * Ends the Postgres processes that a killed start left running on a data directory, so that a new
 * server can have it. Only the owner of `DATA_DIR` may call it; no other process is ever signalled.
 */
import { execFileSync } from 'node:child_process';
import { readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processStart } from './process-identity.ts';

/** Fast shutdown writes a checkpoint; after that a crash recovery is the cheaper way. */
const FAST_MS = 10_000;
const QUIT_MS = 5_000;
const POLL_MS = 20;

/**
 * Stops what still runs on `postgresDir` (a server, or only backends whose server was killed) and
 * removes the stale `postmaster.pid`, whose process id may belong to anybody by now. Answers how many
 * processes it found.
 */
export async function stopLeftovers(postgresDir: string): Promise<number> {
  const found = await serversOn(postgresDir);
  const signals = [
    ['SIGINT', FAST_MS],
    ['SIGQUIT', QUIT_MS],
    ['SIGKILL', QUIT_MS],
  ] as const;
  for (const [signal, patience] of signals) {
    if ((await signalAll(postgresDir, signal, patience)) === 0) break;
  }
  await rm(join(postgresDir, 'postmaster.pid'), { force: true });
  return found.length;
}

async function signalAll(
  postgresDir: string,
  signal: NodeJS.Signals,
  patience: number,
): Promise<number> {
  const pids = await serversOn(postgresDir);
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended by itself.
    }
  }
  const deadline = performance.now() + patience;
  while (performance.now() < deadline) {
    if ((await serversOn(postgresDir)).length === 0) return 0;
    await delay(POLL_MS);
  }
  return (await serversOn(postgresDir)).length;
}

/** Every Postgres process works in its data directory; that tells ours from all others. */
async function serversOn(postgresDir: string): Promise<number[]> {
  if (process.platform !== 'linux') return serverInPidFile(postgresDir);
  const wanted = await stat(postgresDir).catch(() => undefined);
  if (wanted === undefined) return [];
  const pids = (await readdir('/proc')).filter((name) => /^[0-9]+$/.test(name));
  const matches = await Promise.all(
    pids.map(async (pid) => {
      const cwd = await stat(`/proc/${pid}/cwd`).catch(() => undefined);
      if (cwd?.ino !== wanted.ino || cwd.dev !== wanted.dev) return false;
      const program = await readlink(`/proc/${pid}/exe`).catch(() => '');
      return basename(program).replace(/ \(deleted\)$/, '') === 'postgres';
    }),
  );
  return pids.filter((_, index) => matches[index]).map(Number);
}

/** Without /proc: the server named in its own file, when its command line has this directory. */
async function serverInPidFile(postgresDir: string): Promise<number[]> {
  const text = await readFile(join(postgresDir, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(text.split('\n', 1)[0]);
  if (!Number.isSafeInteger(pid) || pid <= 1 || processStart(pid) === undefined) return [];
  const command = execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  return command.includes('postgres') && command.includes(postgresDir) ? [pid] : [];
}
