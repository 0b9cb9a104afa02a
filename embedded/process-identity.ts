/**
 * Tells a process apart from a later one with the same id: by its start time, the boot and the PID
 * namespace it belongs to.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks after boot on Linux, a date elsewhere. Only equality counts. */
  readonly started: string;
  /** Boot and PID namespace: ids mean the same process only where this is equal. */
  readonly scope: string;
}

/** The identity of this process. */
export function ownIdentity(): ProcessIdentity {
  const started = processStart(process.pid);
  if (started === undefined) throw new Error('this process cannot see its own start time');
  return { pid: process.pid, started, scope: processScope() };
}

/** When process `pid` started; `undefined` when there is none, or only its unreaped remains. */
export function processStart(pid: number): string | undefined {
  if (process.platform !== 'linux') return startByPs(pid);
  const stat = readText(`/proc/${pid}/stat`);
  // The name in parentheses may hold anything, also parentheses and spaces (proc_pid_stat(5)).
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields === undefined || fields[0] === 'Z' ? undefined : fields[19];
}

/** What the process ids of this process are relative to. */
export function processScope(): string {
  if (process.platform !== 'linux') return process.platform;
  const boot = readText('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
  return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
}

function startByPs(pid: number): string | undefined {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
