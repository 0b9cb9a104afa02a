/** The processes of this machine, as /proc tells of them. Linux only. */
import { readdir, readFile } from 'node:fs/promises';

export interface RunningProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** All that may be seen. */
export async function processes(): Promise<RunningProcess[]> {
  const names = (await readdir('/proc')).filter((name) => /^[0-9]+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => {
      const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
      const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
      // The name in parentheses may hold anything (proc_pid_stat(5)).
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      return { pid: Number(name), parent, command };
    }),
  );
  return found.filter(({ command }) => command !== '');
}

/** The process and all below it. */
export async function descendants(pid: number): Promise<number[]> {
  const all = await processes();
  const found = [pid];
  for (const one of found) {
    found.push(...all.filter(({ parent }) => parent === one).map((child) => child.pid));
  }
  return found;
}

export async function childrenOf(pid: number): Promise<number[]> {
  const all = await processes();
  return all.filter(({ parent }) => parent === pid).map((child) => child.pid);
}
