/**
 * Job processes are killed and cut off from the database again and again while they work: no job is
 * lost, none has two results, and what may happen once happens once. JOBS sets another number of jobs
 * than 2,000, or 10,000 in the long form of the faults.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Program } from '../../support/start-program.ts';
import { createJobTable, type JobTable } from './job-table.ts';

const JOBS = Number(
  process.env.JOBS ?? (process.env.FAULTS_SECONDS === undefined ? 2_000 : 10_000),
);
const KILL_EVERY_MS = 2_000;
const TENANTS = Array.from({ length: 5 }, () => randomUUID());
/** Most of a job's time is the wait for its lease, when its process was killed. */
const PATIENCE_MS = 60_000 + JOBS * 30;

/** All connections of all job processes. */
const CUT = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'test-jobs' AND datname = current_database()`;

describe('jobs of processes that are killed', function () {
  this.timeout(2 * PATIENCE_MS);
  let table: JobTable;
  before(async () => {
    table = await createJobTable();
  });
  after(() => table?.drop());

  it('are neither lost nor done twice', async () => {
    for (const [index, tenant] of TENANTS.entries()) {
      await table.fill(tenant, index % 2 === 0 ? 'react' : 'callback', JOBS / TENANTS.length);
    }
    // Slow enough to be there when the next one is killed.
    const settings = { JOB_MS: '150', JOB_CONCURRENCY: '16' };
    let [first, second]: Program[] = [
      await table.startProcess(settings),
      await table.startProcess(settings),
    ];
    let kills = 0;
    let killedAt = performance.now();
    let isCut = false;
    await table.until(
      'all done',
      async () => {
        if (performance.now() - killedAt > KILL_EVERY_MS) {
          first?.child.kill('SIGKILL');
          kills += 1;
          killedAt = performance.now();
          isCut = false;
          [first, second] = [second, await table.startProcess(settings)];
        } else if (!isCut && performance.now() - killedAt > KILL_EVERY_MS / 2) {
          isCut = true;
          await table.pool.query(CUT);
        }
        return (await table.unfinished()) === 0;
      },
      PATIENCE_MS,
    );
    expect(kills).to.be.greaterThan(2);
    const { rows } = await table.pool.query(`
      SELECT j.kind, count(*)::int4 AS jobs,
        count(*) FILTER (WHERE e.effects = 1)::int4 AS with_one_effect,
        count(*) FILTER (WHERE e.interrupted = 1)::int4 AS interrupted,
        count(*) FILTER (WHERE r.runs > 1)::int4 AS run_again,
        count(*) FILTER (WHERE j.sealed <> '')::int4 AS not_emptied
      FROM jobs j
      LEFT JOIN LATERAL (SELECT count(*) AS effects,
        count(*) FILTER (WHERE outcome = 'interrupted') AS interrupted
        FROM job_effects WHERE job_id = j.id) e ON true
      LEFT JOIN LATERAL (SELECT count(*) AS runs FROM job_runs WHERE job_id = j.id) r ON true
      GROUP BY j.kind`);
    const of = (kind: string) => rows.find((row) => row.kind === kind);
    for (const kind of ['react', 'callback']) {
      expect(of(kind)).to.include({ with_one_effect: of(kind).jobs, not_emptied: 0 });
    }
    expect(rows.reduce((sum, { jobs }) => sum + jobs, 0)).to.equal(JOBS);
    // Kills hit both kinds: one ends as interrupted, the other is run again.
    expect(of('react').run_again).to.equal(0);
    expect(of('react').interrupted).to.be.greaterThan(0);
    expect(of('callback').interrupted).to.equal(0);
    expect(of('callback').run_again).to.be.greaterThan(0);
  });
});
