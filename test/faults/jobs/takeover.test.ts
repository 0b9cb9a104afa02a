/**
 * How long the jobs of a process lie still that was killed, by the clock of the database alone: work that
 * had not begun goes on within 20 s.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { LEASE_MS } from '../../../shared/jobs/job-store.ts';
import { createJobTable, type JobTable } from './job-table.ts';

const RESUMED_MS_MAX = 20_000;
const JOBS = 4;
/** Writes down each claim, and from when on it was possible. */
const NOTE_CLAIMS = `
  CREATE TABLE job_claims (attempt integer, due_at timestamptz, claimed_at timestamptz);
  CREATE FUNCTION note_claim() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN
       INSERT INTO job_claims VALUES (NEW.attempt, OLD.claimable_at, clock_now());
       RETURN NEW;
     END';
  CREATE TRIGGER note_claim AFTER UPDATE OF attempt ON jobs
    FOR EACH ROW WHEN (NEW.attempt > OLD.attempt) EXECUTE FUNCTION note_claim()`;

describe('jobs of a process that is killed before they have begun', function () {
  this.timeout(90_000);
  let table: JobTable;
  before(async () => {
    table = await createJobTable();
    await table.load(NOTE_CLAIMS);
  });
  after(() => table?.drop());

  it('are claimed by another within 20 s', async () => {
    await table.enqueue(randomUUID(), 'callback', JOBS);
    const killed = await table.startProcess({ JOB_MS: '600000' });
    const claimed = 'SELECT count(*) FROM job_claims WHERE attempt = ';
    await table.until('claimed', async () => (await table.count(`${claimed} 1`)) === JOBS);
    await table.startProcess();
    // Right after a heartbeat, when there is most to wait for.
    const extended = `SELECT count(*) FROM jobs, (SELECT max(claimed_at) AS at FROM job_claims) c
      WHERE claimable_at > c.at + interval '${LEASE_MS + 1_000} ms'`;
    await table.until('extended', async () => (await table.count(extended)) === JOBS);
    killed.child.kill('SIGKILL');
    await killed.finished;
    const { rows: dead } = await table.pool.query<{ at: Date }>('SELECT clock_now() AS at');
    await table.until('claimed again', async () => (await table.count(`${claimed} 2`)) === JOBS);
    const { rows } = await table.pool.query<{ due_at: Date; claimed_at: Date }>(
      'SELECT due_at, claimed_at FROM job_claims WHERE attempt = 2',
    );
    for (const { due_at, claimed_at } of rows) {
      expect(Number(due_at) - Number(dead[0]?.at), 'rest of the lease').to.be.at.most(LEASE_MS);
      const waited = Number(claimed_at) - Number(due_at);
      expect(waited, 'after its end').to.be.within(0, RESUMED_MS_MAX - LEASE_MS);
    }
    await table.until('done', async () => (await table.unfinished()) === 0);
    const results = `SELECT count(*) FROM job_effects WHERE outcome = 'result'`;
    expect(await table.count(results)).to.equal(JOBS);
  });
});
