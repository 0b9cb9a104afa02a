/**
 * CPU time and memory of processes, from Linux' /proc. Never samples: the kernel's own counters are
 * read before and after.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ: fixed at 100 in the Linux ABI on every platform that Node runs on. */
const TICKS_PER_SECOND = 100;
/** Fields of /proc/<pid>/stat behind the command name, counted from 0 (proc(5)). */
const PARENT = 1;
const TIMES = { utime: 11, stime: 12, cutime: 13, cstime: 14 };

/**
 * CPU seconds, user and system, that a process and everything it ever started have used. A child
 * that ended counts where its parent waited for it.
 */
export function cpuSecondsOf(root: number): number {
  const stats = readStats();
  let ticks = 0;
  for (const [pid, fields] of stats) {
    if (!descends(pid, root, stats)) continue;
    for (const index of Object.values(TIMES)) ticks += Number(fields[index]);
  }
  return ticks / TICKS_PER_SECOND;
}

/** The processes that descend from `root`, without it. */
export function descendantsOf(root: number): number[] {
  const stats = readStats();
  return [...stats.keys()].filter((pid) => pid !== root && descends(pid, root, stats));
}

/** Resident memory of one process in MiB. */
export function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  if (kib === undefined) throw new Error('a process without resident memory');
  return Number(kib) / 1024;
}

type Stats = ReadonlyMap<number, readonly string[]>;

function readStats(): Stats {
  const stats = new Map<number, string[]>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const fields = readStat(entry);
    if (fields !== undefined) stats.set(Number(entry), fields);
  }
  return stats;
}

/** Undefined when the process has just ended. */
function readStat(pid: string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command name is in parentheses and may hold anything, parentheses too.
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function descends(pid: number, root: number, stats: Stats): boolean {
  for (let at = pid; at > 0; at = Number(stats.get(at)?.[PARENT] ?? 0)) {
    if (at === root) return true;
  }
  return false;
}
