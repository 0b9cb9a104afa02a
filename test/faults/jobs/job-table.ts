/** A database with jobs in it, and what became of them. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { enqueueJob, type JobKind } from '../../../shared/jobs/job-store.ts';
import { inTransaction, type Pool } from '../../../shared/postgres/pool.ts';
import { createTestPool, type TestDatabase } from '../../support/postgres.ts';
import { type Program, startProgram } from '../../support/start-program.ts';

export interface JobTable {
  readonly database: TestDatabase;
  readonly pool: Pool;
  /** Adds jobs of a tenant as one transaction; answers their ids. */
  enqueue(tenantId: string, kind: JobKind, count: number): Promise<string[]>;
  /** Adds very many, without telling anybody. */
  fill(tenantId: string, kind: JobKind, count: number): Promise<void>;
  /** Runs statements that take longer than a pool allows. */
  load(sql: string, values?: unknown[]): Promise<void>;
  unfinished(): Promise<number>;
  /** Settles with the first true answer. */
  until(what: string, isReached: () => Promise<boolean>, patienceMs?: number): Promise<void>;
  count(sql: string, values?: unknown[]): Promise<number>;
  startProcess(settings?: NodeJS.ProcessEnv): Promise<Program>;
  drop(): Promise<void>;
}

const PATIENCE_MS = 60_000;

/** Drop it in `after`: it ends the processes it has started. */
export async function createJobTable(): Promise<JobTable> {
  const { database, pool, drop } = await createTestPool(4);
  const { connectionString } = database;
  await pool.query(`
    CREATE TABLE job_effects (job_id uuid NOT NULL, kind text NOT NULL, outcome text NOT NULL);
    CREATE TABLE job_runs (job_id uuid NOT NULL, pid integer NOT NULL);
    CREATE INDEX ON job_effects (job_id);
    CREATE INDEX ON job_runs (job_id)`);
  const programs: Program[] = [];
  const count = async (sql: string, values: unknown[] = []): Promise<number> => {
    const { rows } = await pool.query<{ count: string }>(sql, values);
    return Number(rows[0]?.count);
  };
  const load = async (sql: string, values?: unknown[]): Promise<void> => {
    const client = new pg.Client({ connectionString });
    await client.connect();
    await client.query(sql, values).finally(() => client.end());
  };
  return {
    database,
    pool,
    count,
    enqueue: (tenant_id, kind, wanted) =>
      inTransaction(pool, async (client) => {
        const ids = Array.from({ length: wanted }, () => randomUUID());
        for (const id of ids)
          await enqueueJob(client, { tenant_id, id, kind, sealed: Buffer.from('sealed') });
        return ids;
      }),
    fill: (tenantId, kind, wanted) =>
      load(
        `INSERT INTO jobs (tenant_id, id, kind, sealed)
         SELECT $1, gen_random_uuid(), $2, 'sealed' FROM generate_series(1, $3)`,
        [tenantId, kind, wanted],
      ),
    load,
    unfinished: () => count('SELECT count(*) FROM jobs WHERE finished_at IS NULL'),
    until: async (what, isReached, patienceMs = PATIENCE_MS) => {
      const deadline = performance.now() + patienceMs;
      while (!(await isReached())) {
        if (performance.now() > deadline) throw new Error(`${what}: not within ${patienceMs} ms`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    startProcess: async (settings = {}) => {
      const program = startProgram('test/faults/jobs/job-program.ts', [], {
        DATABASE_URL: connectionString,
        ...settings,
      });
      programs.push(program);
      await program.says(/^running$/m);
      return program;
    },
    drop: async () => {
      for (const { child } of programs) child.kill('SIGKILL');
      await Promise.all(programs.map(({ finished }) => finished));
      await drop();
    },
  };
}
