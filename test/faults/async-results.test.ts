/**
 * An asynchronous run has one result, and its tokens are made with it or not at all: whatever breaks
 * between the end of the code and the commit.
 */
import { expect } from 'chai';
import type { JobKind } from '../../shared/jobs/job-store.ts';
import type { JobLease, JobWork } from '../../shared/jobs/run-jobs.ts';
import { type JobRunner, startJobRunner } from '../api/reactors/job-runner.ts';
import { type Reactor, type Reactors, startReactors } from '../api/reactors/reactors.ts';
import { call } from '../support/http-call.ts';

describe('the result of an asynchronous run', () => {
  let reactors: Reactors;
  let making: Reactor;
  let jobs: JobRunner | undefined;
  before(async () => {
    reactors = await startReactors();
    making = await reactors.script('return { raw: 1, tokenize: { a: "made" } }');
  });
  afterEach(async () => {
    await jobs?.stop();
    jobs = undefined;
    await reactors.control.pool.query('DELETE FROM tokens');
  });
  after(async () => {
    await reactors?.stop();
  });

  const asyncly = async (): Promise<string> => {
    const line = `POST /reactors/${making.id}/react-async`;
    const { body } = await call(reactors.url, line, { key: reactors.key, json: {} });
    return String(body.asyncReactorRequestId);
  };
  const ended = async (id: string) => {
    for (;;) {
      const line = `GET /reactors/${making.id}/results/${id}`;
      const answer = await call(reactors.url, line, { key: reactors.key });
      if (answer.status !== 404) return answer;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const count = async (table: string): Promise<number> => {
    const { rows } = await reactors.control.pool.query(`SELECT count(*)::int AS n FROM ${table}`);
    return rows[0].n;
  };
  /** Runs reactions on leases that `change` has changed. */
  const withLease =
    (change: (lease: JobLease, id: string) => Partial<JobLease>) =>
    (works: Record<JobKind, JobWork>): Record<JobKind, JobWork> => ({
      ...works,
      react: {
        ...works.react,
        run: (job, lease) =>
          works.react.run(job, {
            signal: lease.signal,
            begin: () => lease.begin(),
            inTransaction: (write) => lease.inTransaction(write),
            retry: (at, write) => lease.retry(at, write),
            ...change(lease, job.id),
          }),
      },
    });

  it('is committed with its tokens after an outage, once', async () => {
    let failures = 0;
    jobs = await startJobRunner(reactors, {
      works: withLease((lease) => ({
        inTransaction: (write) =>
          lease.inTransaction(async (client) => {
            await write(client);
            failures += 1;
            if (failures <= 2) throw new Error('Connection terminated unexpectedly');
          }),
      })),
    });
    const answer = await ended(await asyncly());
    expect([failures, answer.status]).to.deep.equal([3, 200]);
    expect(await count('tokens')).to.equal(1);
    const { a } = answer.body.tokens as Record<string, unknown>;
    const token = await call(reactors.url, `GET /tokens/${a}`, { key: reactors.key });
    expect(token.body.data).to.equal('made');
  });

  it('is not made again when its commit went through and only the answer was lost', async () => {
    let commits = 0;
    jobs = await startJobRunner(reactors, {
      works: withLease((lease) => ({
        inTransaction: async (write) => {
          const isOurs = await lease.inTransaction(write);
          commits += 1;
          if (commits === 1) throw new Error('Connection terminated unexpectedly');
          return isOurs;
        },
      })),
    });
    const answer = await ended(await asyncly());
    expect(answer.status).to.equal(200);
    while (commits < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    expect([await count('tokens'), await count('reactor_results')]).to.deep.equal([1, 2]);
  });

  it('is another’s to write once the lease is: the code’s own is dropped with its tokens', async () => {
    const { pool } = reactors.control;
    let runs = 0;
    jobs = await startJobRunner(reactors, {
      works: withLease((lease, id) => ({
        begin: async () => {
          runs += 1;
          const isOurs = await lease.begin();
          // As if this process had slept for longer than its lease.
          await pool.query(
            'UPDATE jobs SET lease_id = gen_random_uuid(), claimable_at = clock_now() WHERE id = $1',
            [id],
          );
          return isOurs;
        },
      })),
    });
    const answer = await ended(await asyncly());
    expect(answer.status).to.equal(500);
    expect(answer.body.detail).to.equal('Reactor Runtime Error');
    expect(answer.body.errors).to.deep.equal({ error: ['interrupted'] });
    expect([runs, await count('tokens')]).to.deep.equal([1, 0]);
  });

  it('is there although what asked for it ends each process that begins with it', async () => {
    const id = await asyncly();
    await reactors.control.pool.query('UPDATE jobs SET attempt = 100 WHERE id = $1', [id]);
    jobs = await startJobRunner(reactors);
    const answer = await ended(id);
    expect(answer.body.errors).to.deep.equal({ error: ['interrupted'] });
    expect(await count('tokens')).to.equal(0);
  });

  it('is an error, and no token is left, when one of them cannot be made', async () => {
    const failing = await reactors.script(
      'return { tokenize: { a: "made", b: { type: "card", data: { number: "1" } } } }',
    );
    jobs = await startJobRunner(reactors);
    const line = `POST /reactors/${failing.id}/react-async`;
    const { body } = await call(reactors.url, line, { key: reactors.key, json: {} });
    const synchronous = await reactors.react(failing);
    for (;;) {
      const answer = await call(
        reactors.url,
        `GET /reactors/${failing.id}/results/${body.asyncReactorRequestId}`,
        { key: reactors.key },
      );
      if (answer.status === 404) continue;
      expect([answer.status, answer.text]).to.deep.equal([400, synchronous.text]);
      break;
    }
    expect(await count('tokens')).to.equal(0);
  });
});
