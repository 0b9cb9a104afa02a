/** What is done to an installation while clients work: each fault is over, or heals, by itself. */
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf } from '../../support/process-tree.ts';
import type { World } from './world.ts';

export interface Fault {
  readonly name: string;
  strike(world: World): Promise<void>;
}

/** A process may have ended just now: then there is nothing to do. */
function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const planeFault = (
  signal: NodeJS.Signals,
  part: 'dataPlane' | 'controlPlane' | 'jobs',
): Fault => ({
  name: `${signal} of ${part}`,
  async strike({ planes }) {
    const plane = planes[part];
    const pid = plane.pid();
    // It may not be up again since the last time.
    if (pid !== undefined && plane.isAlive()) kill(pid, signal);
  },
});

/** Less than a statement may take. */
const STOPPED_MS = 1_500;

export const FAULTS: readonly Fault[] = [
  planeFault('SIGKILL', 'dataPlane'),
  planeFault('SIGKILL', 'controlPlane'),
  planeFault('SIGKILL', 'jobs'),
  planeFault('SIGTERM', 'dataPlane'),
  planeFault('SIGTERM', 'jobs'),
  {
    name: 'SIGKILL of Postgres',
    async strike(world) {
      kill(world.postgresPid(), 'SIGKILL');
    },
  },
  {
    name: 'SIGKILL of the sandbox hosts',
    async strike({ planes }) {
      const parents = [planes.dataPlane, planes.jobs].flatMap((plane) => plane.pid() ?? []);
      const hosts = await Promise.all(parents.map(childrenOf));
      for (const pid of hosts.flat()) kill(pid, 'SIGKILL');
    },
  },
  {
    name: 'Postgres stopped for a moment',
    async strike(world) {
      const pid = world.postgresPid();
      const all = [pid, ...(await childrenOf(pid))];
      for (const one of all) kill(one, 'SIGSTOP');
      await delay(STOPPED_MS);
      for (const one of all) kill(one, 'SIGCONT');
    },
  },
  {
    name: 'all connections of the database cut',
    async strike({ admin }) {
      // The database may be on its way back from the fault before.
      await admin
        .query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE usename = 'sallyport' AND pid <> pg_backend_pid()`,
        )
        .catch(() => undefined);
    },
  },
  {
    name: 'answers to commits lost',
    async strike({ answers }) {
      answers.drop(3);
    },
  },
];
