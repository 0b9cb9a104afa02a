/** Processes that run jobs are stopped, frozen, ended by signals; jobs fail and tenants flood. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { LEASE_MS } from '../../../shared/jobs/job-store.ts';
import { type JobWork, runJobs } from '../../../shared/jobs/run-jobs.ts';
import { createJobMetrics } from '../../../shared/observability/job-metrics.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createMetrics } from '../../../shared/observability/metrics.ts';
import { createJobTable, type JobTable } from './job-table.ts';

/** Longer than any of these tests. */
const ENDLESS = { JOB_MS: '600000' };

describe('processes that run jobs', function () {
  this.timeout(90_000);
  let table: JobTable;
  beforeEach(async () => {
    table = await createJobTable();
  });
  afterEach(() => table?.drop());

  const runs = () => table.count('SELECT count(*) FROM job_runs');
  const outcomes = async (): Promise<string[]> => {
    const { rows } = await table.pool.query('SELECT outcome FROM job_effects ORDER BY outcome');
    return rows.map(({ outcome }) => outcome);
  };
  async function jobRow(id: string | undefined) {
    const { rows } = await table.pool.query(
      `SELECT attempt, lease_id IS NOT NULL AS leased, started_at IS NOT NULL AS started,
         finished_at IS NOT NULL AS finished, claimable_at <= clock_now() AS due
       FROM jobs WHERE id = $1`,
      [id],
    );
    return rows[0];
  }

  it('a process that was frozen for longer than its lease can finish nothing', async () => {
    const [id] = await table.enqueue(randomUUID(), 'react', 1);
    const frozen = await table.startProcess({ JOB_MS: '500' });
    await table.until('begun', async () => (await runs()) === 1);
    frozen.child.kill('SIGSTOP');
    // Instead of waiting for its end.
    await table.pool.query('UPDATE jobs SET claimable_at = clock_now()');
    await table.startProcess();
    await table.until('ended by the other', async () => (await jobRow(id)).finished);
    frozen.child.kill('SIGCONT');
    // It is back, and works: what it had is not finished twice.
    const others = await table.enqueue(randomUUID(), 'callback', 200);
    await table.until('all done', async () => (await table.unfinished()) === 0);
    const pids = 'SELECT count(DISTINCT pid) FROM job_runs';
    await table.until('both at work', async () => {
      if ((await table.count(pids)) === 2) return true;
      await table.enqueue(randomUUID(), 'callback', 50);
      return false;
    });
    await table.until('all done', async () => (await table.unfinished()) === 0);
    expect(others).to.have.length(200);
    expect(await table.count('SELECT count(*) FROM job_effects WHERE job_id = $1', [id])).to.equal(
      1,
    );
    const { rows } = await table.pool.query('SELECT outcome FROM job_effects WHERE job_id = $1', [
      id,
    ]);
    expect(rows[0].outcome).to.equal('interrupted');
  });

  it('a job that takes longer than a lease stays with the process that has it', async () => {
    await table.enqueue(randomUUID(), 'callback', 1);
    const settings = { JOB_MS: String(LEASE_MS + 3_000) };
    await table.startProcess(settings);
    await table.startProcess(settings);
    await table.until('done', async () => (await table.unfinished()) === 0);
    expect(await runs()).to.equal(1);
    expect(await outcomes()).to.deep.equal(['result']);
  });

  it('SIGTERM lets short jobs end, gives long ones back at once, and takes no new ones', async () => {
    const tenant = randomUUID();
    const [once] = await table.enqueue(tenant, 'react', 1);
    const [repeated] = await table.enqueue(tenant, 'callback', 1);
    const program = await table.startProcess({ ...ENDLESS, JOB_DRAIN_MS: '700' });
    await table.until('both run', async () => (await runs()) === 2);
    program.child.kill('SIGTERM');
    const [late] = await table.enqueue(tenant, 'callback', 1);
    expect((await program.finished).code).to.equal(0);
    expect(await jobRow(late)).to.include({ attempt: 0, leased: false });
    expect(await jobRow(once)).to.include({ leased: false, started: true, due: true });
    expect(await jobRow(repeated)).to.include({ attempt: 0, leased: false, due: true });
    await table.startProcess();
    await table.until('all done', async () => (await table.unfinished()) === 0);
    expect(await outcomes()).to.deep.equal(['interrupted', 'result', 'result']);
  });

  it('SIGTERM waits for what ends in time', async () => {
    const ids = await table.enqueue(randomUUID(), 'react', 4);
    const program = await table.startProcess({ JOB_MS: '1000', JOB_DRAIN_MS: '20000' });
    await table.until('all run', async () => (await runs()) === ids.length);
    program.child.kill('SIGTERM');
    expect((await program.finished).code).to.equal(0);
    expect(await outcomes()).to.deep.equal(ids.map(() => 'result'));
  });

  it('a second SIGTERM ends the process whatever it does', async () => {
    await table.enqueue(randomUUID(), 'react', 1);
    const program = await table.startProcess({ ...ENDLESS, JOB_DRAIN_MS: '600000' });
    await table.until('it runs', async () => (await runs()) === 1);
    program.child.kill('SIGTERM');
    await table.until('draining', async () => {
      program.child.kill('SIGTERM');
      return program.child.exitCode !== null;
    });
    expect((await program.finished).code).to.equal(1);
  });

  it('a flood of one tenant does not keep another from its turn', async () => {
    const [flood, other] = [randomUUID(), randomUUID()];
    await table.fill(flood, 'callback', 100_000);
    await table.startProcess({ JOB_MS: '20', JOB_CONCURRENCY: '8' });
    await table.until('flooded', async () => (await runs()) > 20);
    const before = await table.count('SELECT count(*) FROM jobs WHERE finished_at IS NOT NULL');
    await table.enqueue(other, 'callback', 40);
    const left = 'SELECT count(*) FROM jobs WHERE tenant_id = $1 AND finished_at IS NULL';
    await table.until('the other is done', async () => (await table.count(left, [other])) === 0);
    const done = 100_000 - (await table.count(left, [flood])) - before;
    // Both have half of the places: they come about as fast as each other.
    expect(done).to.be.lessThan(40 * 10);
  });

  it('what fails is tried again later, and what fails after its begin is only ended', async () => {
    const tenant = randomUUID();
    const seen: string[] = [];
    const failing: JobWork = {
      concurrency: 2,
      async run(job, lease) {
        seen.push(`${job.kind} ${job.attempt}${job.started ? ' started' : ''}`);
        if (job.started) return void (await lease.inTransaction(async () => {}));
        if (job.kind === 'react') await lease.begin();
        if (job.attempt < 3) throw new Error('failed');
        await lease.inTransaction(async () => {});
      },
    };
    const [id] = await table.enqueue(tenant, 'callback', 1);
    await table.enqueue(tenant, 'react', 1);
    const stopping = new AbortController();
    const running = runJobs({
      ...{ pool: table.pool, log: createLogger('test', 'silent'), signal: stopping.signal },
      metrics: createJobMetrics(createMetrics({ version: 'test' }, table.pool)),
      works: { react: failing, callback: failing },
    });
    await table.until('failed', async () => seen.includes('callback 1'));
    await table.until('given back', async () => !(await jobRow(id)).leased);
    expect(await jobRow(id)).to.include({ due: false, attempt: 1, finished: false });
    await table.until('all done', async () => {
      await table.pool.query('UPDATE jobs SET claimable_at = clock_now() WHERE lease_id IS NULL');
      return (await table.unfinished()) === 0;
    });
    stopping.abort();
    await running;
    expect(seen.filter((line) => line.startsWith('react'))).to.deep.equal([
      'react 1',
      'react 1 started',
    ]);
    expect(seen.filter((line) => line.startsWith('callback'))).to.deep.equal([
      'callback 1',
      'callback 2',
      'callback 3',
    ]);
  });
});
