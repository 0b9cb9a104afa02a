/**
 * A whole installation as `npm start` runs it, in a directory of its own, with its processes within
 * reach of signals. Linux only: processes are found through /proc.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dataDirAt } from '../../embedded/data-dir.ts';
import { runningConnectionString } from '../../embedded/postgres-database.ts';
import { generateApiKey } from '../../shared/api-keys.ts';
import { descendants, processes } from '../support/process-tree.ts';
import { type Finished, type Program, startProgram } from '../support/start-program.ts';

const READY = /^Sallyport is ready at (http:\/\/localhost:[0-9]+)$/m;
const ANY_PORT = { PORT: '0', CONTROL_PLANE_PORT: '0', METRICS_PORT: '0' };

const ENTRIES = {
  'data-plane': 'data-plane/main.ts',
  'control-plane': 'control-plane/main.ts',
  jobs: 'data-plane/jobs-main.ts',
} as const;

export type Part = 'start' | 'postmaster' | keyof typeof ENTRIES;

export interface Installation {
  readonly managementKey: string;
  readonly dataDir: string;
  /** Changes with every start. */
  baseUrl(): string;
  metricsUrl(): string;
  /** Everything that was written to stdout and stderr by all starts. */
  output(): string;
  pidOf(part: Part): Promise<number>;
  /** Every process of the installation. */
  pids(): Promise<number[]>;
  /** Superuser access. */
  adminConnectionString(): Promise<string>;
  /** SIGKILL to every process but Postgres, which is left an orphan. */
  killAllButPostgres(): Promise<void>;
  /** SIGTERM, and how it ended. */
  stop(): Promise<Finished>;
  start(): Promise<void>;
  /** Ends everything and removes the directory. */
  remove(): Promise<void>;
}

/** Settles when the first start is ready. `settings` are environment variables. */
export async function install(
  settings: NodeJS.ProcessEnv = {},
  parent = tmpdir(),
): Promise<Installation> {
  const root = await mkdtemp(join(parent, 'sallyport-fault-'));
  const dataDir = join(root, 'data');
  const managementKey = generateApiKey();
  const programs: Program[] = [];
  const running = (): Program => programs.at(-1) as Program;

  const start = async (): Promise<void> => {
    const given = { DATA_DIR: dataDir, SALLYPORT_BOOTSTRAP_KEY: managementKey };
    programs.push(
      startProgram('embedded/start.ts', [], {
        LOG_LEVEL: 'info',
        ...ANY_PORT,
        ...given,
        ...settings,
      }),
    );
    await running().says(READY);
  };
  const pidOf = async (part: Part): Promise<number> => {
    const { pid = 0 } = running().child;
    if (part === 'start') return pid;
    if (part === 'postmaster') return postmasterPid(dataDir);
    const child = (await processes()).find(
      ({ parent, command }) => parent === pid && command.includes(ENTRIES[part]),
    );
    if (child === undefined) throw new Error(`no ${part}`);
    return child.pid;
  };
  const stop = async (): Promise<Finished> => {
    running().child.kill('SIGTERM');
    return running().finished;
  };
  await start();
  return {
    managementKey,
    dataDir,
    baseUrl: () => READY.exec(running().stdout())?.[1] ?? '',
    metricsUrl: () => {
      const [, port] = /"port":([0-9]+),"msg":"metrics"/.exec(running().stderr()) ?? [];
      return `http://localhost:${port}`;
    },
    output: () => programs.map((program) => program.stdout() + program.stderr()).join(''),
    pidOf,
    pids: async () => descendants(await pidOf('start')),
    adminConnectionString: async () => {
      const url = (await runningConnectionString(dataDirAt(dataDir))) ?? '';
      return url.replace('//sallyport:', '//postgres:');
    },
    killAllButPostgres: async () => {
      const parts = await Promise.all(
        (['start', 'data-plane', 'control-plane', 'jobs'] as const).map((part) => pidOf(part)),
      );
      for (const pid of parts) process.kill(pid, 'SIGKILL');
      await running().finished;
    },
    stop,
    start,
    remove: async () => {
      await stop();
      await rm(root, { recursive: true });
    },
  };
}

/** The server and its own children, e.g. to stop all of them. */
export async function postgresPids(dataDir: string): Promise<number[]> {
  return descendants(await postmasterPid(dataDir));
}

async function postmasterPid(dataDir: string): Promise<number> {
  const [first = ''] = (await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split(
    '\n',
  );
  return Number(first);
}
