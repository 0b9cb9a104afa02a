/** Who may have a job: one lease at a time, and every tenant its turn. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import pg from 'pg';
import { claimJobs, type JobClaim } from '../../../shared/jobs/claim-jobs.ts';
import { keepLeases } from '../../../shared/jobs/heartbeat.ts';
import { HeldLease } from '../../../shared/jobs/job-lease.ts';
import {
  beginJob,
  enqueueJob,
  extendLeases,
  JOBS_CHANNEL,
  NOTICE_EVERY_MS,
} from '../../../shared/jobs/job-store.ts';
import { TenantTurns } from '../../../shared/jobs/tenant-turns.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { inTransaction } from '../../../shared/postgres/pool.ts';
import { createJobTable, type JobTable } from './job-table.ts';

describe('claims of jobs', () => {
  let table: JobTable;
  before(async () => {
    table = await createJobTable();
  });
  afterEach(() => table.pool.query('TRUNCATE jobs, job_effects'));
  after(() => table?.drop());

  const leaseOf = (job: JobClaim): HeldLease =>
    new HeldLease(table.pool, job, Number.POSITIVE_INFINITY);

  /** The only job of a new tenant, claimed once. */
  async function claimedJob(): Promise<JobClaim> {
    const tenant_id = randomUUID();
    await table.enqueue(tenant_id, 'react', 1);
    const [job] = await claimJobs(table.pool, 'react', [{ tenant_id, count: 1 }], 1);
    return job as JobClaim;
  }

  /** As if its process had been stopped for longer than a lease, and another had taken it. */
  async function takenOver({ tenant_id, id }: JobClaim): Promise<JobClaim> {
    await table.pool.query('UPDATE jobs SET claimable_at = clock_now() WHERE id = $1', [id]);
    const [job] = await claimJobs(table.pool, 'react', [{ tenant_id, count: 1 }], 1);
    return job as JobClaim;
  }

  const writeEffect =
    (outcome: string) =>
    async (client: pg.ClientBase): Promise<void> => {
      await client.query('INSERT INTO job_effects (job_id, kind, outcome) VALUES ($1, $2, $3)', [
        ...[randomUUID(), 'react', outcome],
      ]);
    };
  const effects = async (): Promise<string[]> => {
    const { rows } = await table.pool.query<{ outcome: string }>('SELECT outcome FROM job_effects');
    return rows.map(({ outcome }) => outcome);
  };

  it('two claimers at the same time never get the same job', async () => {
    const tenant_id = randomUUID();
    const ids = await table.enqueue(tenant_id, 'react', 60);
    const claims = await Promise.all(
      Array.from({ length: 6 }, () =>
        claimJobs(table.pool, 'react', [{ tenant_id, count: 20 }], 20),
      ),
    );
    const claimed = claims.flat().map(({ id }) => id);
    expect(new Set(claimed)).to.have.property('size', claimed.length);
    const rest = await claimJobs(table.pool, 'react', [{ tenant_id, count: 60 }], 60);
    expect([...claimed, ...rest.map(({ id }) => id)]).to.have.members(ids);
  });

  it('what another is claiming at this moment is passed over, not waited for', async () => {
    const tenant_id = randomUUID();
    await table.enqueue(tenant_id, 'react', 5);
    await inTransaction(table.pool, async (client) => {
      const first = await claimJobs(client, 'react', [{ tenant_id, count: 3 }], 3);
      const others = await claimJobs(table.pool, 'react', [{ tenant_id, count: 5 }], 5);
      expect([first.length, others.length]).to.deep.equal([3, 2]);
    });
  });

  it('a job is given to nobody else while its lease lasts, and to one when it is over', async () => {
    const job = await claimedJob();
    const { tenant_id } = job;
    const again = () => claimJobs(table.pool, 'react', [{ tenant_id, count: 1 }], 1);
    expect(await again()).to.deep.equal([]);
    const other = await takenOver(job);
    expect([job.attempt, other.attempt, other.started]).to.deep.equal([1, 2, false]);
    expect(other.lease_id).not.to.equal(job.lease_id);
    expect(await again()).to.deep.equal([]);
  });

  it('who has lost its lease can neither begin, finish nor retry, and writes nothing', async () => {
    const job = await claimedJob();
    const other = await takenOver(job);
    const lost = [
      (lease: HeldLease) => lease.begin(),
      (lease: HeldLease) => lease.inTransaction(writeEffect('late')),
      (lease: HeldLease) => lease.retry(Date.now(), writeEffect('late')),
    ];
    for (const attempt of lost) {
      const lease = leaseOf(job);
      expect(await attempt(lease)).to.equal(false);
      expect([lease.state, lease.signal.aborted]).to.deep.equal(['lost', true]);
    }
    expect(await effects()).to.deep.equal([]);
    expect(await extendLeases(table.pool, [job, other])).to.deep.equal(new Set([other.lease_id]));
    const lease = leaseOf(other);
    expect(await lease.begin()).to.equal(true);
    expect(await lease.inTransaction(writeEffect('once'))).to.equal(true);
    expect(await leaseOf(other).inTransaction(writeEffect('twice'))).to.equal(false);
    expect(await effects()).to.deep.equal(['once']);
  });

  it('a lease that could not be extended in time is given up, before another is told of it', async () => {
    const lease = new HeldLease(table.pool, await claimedJob(), performance.now());
    const stopping = new AbortController();
    const log = createLogger('test', 'silent');
    const kept = keepLeases(table.pool, new Set([lease]), log, stopping.signal);
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    stopping.abort();
    await kept;
    expect(lease.state).to.equal('lost');
  });

  it('a lease that is extended while its job begins is not taken for lost', async () => {
    const job = await claimedJob();
    const beat = await inTransaction(table.pool, async (client) => {
      await beginJob(client, job);
      const extending = extendLeases(table.pool, [job]);
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'
        AND datname = current_database() AND query LIKE '%unnest%'`;
      await table.until('it waits', async () => (await table.pool.query(waiting)).rowCount === 1);
      return { extending };
    });
    expect(await beat.extending).to.deep.equal(new Set([job.lease_id]));
  });

  it('what was begun is never begun again, unless it was given back for that', async () => {
    const job = await claimedJob();
    expect(await leaseOf(job).begin()).to.equal(true);
    const other = await takenOver(job);
    expect(other.started).to.equal(true);
    expect(await leaseOf(other).begin()).to.equal(false);
    const third = await takenOver(other);
    expect(await leaseOf(third).retry(0)).to.equal(true);
    const fourth = await takenOver(third);
    expect([fourth.started, await leaseOf(fourth).begin()]).to.deep.equal([false, true]);
  });

  it('an end whose writes fail is no end', async () => {
    const job = await claimedJob();
    const lease = leaseOf(job);
    const failing = lease.inTransaction(async (client) => {
      await writeEffect('undone')(client);
      throw new Error('refused');
    });
    const error = await failing.then(() => undefined).catch((caught: Error) => caught.message);
    expect([error, lease.state, await effects()]).to.deep.equal(['refused', 'held', []]);
    expect(await lease.inTransaction(writeEffect('done'))).to.equal(true);
    expect(await effects()).to.deep.equal(['done']);
    const { rows } = await table.pool.query('SELECT sealed, finished_at FROM jobs');
    expect(rows[0].sealed).to.have.length(0);
    expect(rows[0].finished_at).to.be.an.instanceOf(Date);
  });

  it('listeners are told when an enqueued job is committed, and not before', async () => {
    const listening = new pg.Client({ connectionString: table.database.connectionString });
    await listening.connect();
    await listening.query(`LISTEN ${JOBS_CHANNEL}`);
    let notices = 0;
    const told = new Promise<void>((resolve) => {
      listening.on('notification', () => {
        notices += 1;
        resolve();
      });
    });
    // The tests before may just have sent one.
    await new Promise((resolve) => setTimeout(resolve, 2 * NOTICE_EVERY_MS));
    await inTransaction(table.pool, async (client) => {
      const job = { tenant_id: randomUUID(), id: randomUUID(), kind: 'react' } as const;
      await enqueueJob(client, { ...job, sealed: Buffer.alloc(0) });
      await listening.query('SELECT 1');
      expect(notices).to.equal(0);
    });
    await told;
    await listening.end();
  });

  describe('turns of tenants', () => {
    it('one with very many jobs takes its share of the places and no more', async () => {
      const [big, small] = [randomUUID(), randomUUID()];
      await table.fill(big, 'react', 5_000);
      const turns = new TenantTurns('react');
      const first = await turns.claim(table.pool, 16);
      expect(first).to.have.length(8);
      expect(await turns.claim(table.pool, 8)).to.deep.equal([]);
      await table.enqueue(small, 'react', 2);
      const second = await turns.claim(table.pool, 8);
      expect(second.map(({ tenant_id }) => tenant_id)).to.deep.equal([small, small]);
      for (let ended = 1; ended <= 4; ended += 1) turns.release(big);
      const third = await turns.claim(table.pool, 10);
      expect(third.map(({ tenant_id }) => tenant_id)).to.deep.equal([big, big, big]);
    });

    it('few whose jobs never end leave places to the others', async () => {
      const stuck = Array.from({ length: 5 }, () => randomUUID());
      for (const tenant of stuck) await table.enqueue(tenant, 'callback', 70);
      const turns = new TenantTurns('callback');
      let free = 64;
      for (;;) {
        const claimed = await turns.claim(table.pool, free);
        if (claimed.length === 0) break;
        free -= claimed.length;
      }
      expect(free).to.equal(14);
      const other = randomUUID();
      await table.enqueue(other, 'callback', 5);
      const claimed = await turns.claim(table.pool, free);
      expect(new Set(claimed.map(({ tenant_id }) => tenant_id))).to.deep.equal(new Set([other]));
    });

    it('all tenants are served before one is served again, however many there are', async () => {
      const tenants = Array.from({ length: 250 }, () => randomUUID());
      for (const tenant of tenants) await table.enqueue(tenant, 'callback', 3);
      const turns = new TenantTurns('callback');
      const served: string[] = [];
      while (served.length < tenants.length) {
        const claimed = await turns.claim(table.pool, 5);
        served.push(...claimed.map(({ tenant_id }) => tenant_id));
      }
      expect(new Set(served)).to.have.property('size', tenants.length);
    });

    it('tenants whose jobs are all due later are passed over', async () => {
      const tenants = Array.from({ length: 210 }, () => randomUUID()).toSorted();
      await inTransaction(table.pool, async (client) => {
        for (const tenant_id of tenants) {
          const job = { tenant_id, id: randomUUID(), kind: 'react' } as const;
          await enqueueJob(client, {
            ...job,
            sealed: Buffer.alloc(0),
            run_at_ms: Date.now() + 3_600_000,
          });
        }
      });
      const turns = new TenantTurns('react');
      expect(await turns.claim(table.pool, 8)).to.deep.equal([]);
      // One at each place of the circle: none is missed, wherever the last round ended.
      for (const tenant_id of [tenants[0], tenants[209], tenants[104], tenants[99], tenants[100]]) {
        await table.enqueue(tenant_id as string, 'react', 1);
        const claimed = await turns.claim(table.pool, 8);
        expect(claimed.map((job) => job.tenant_id)).to.deep.equal([tenant_id]);
      }
    });
  });
});
