/** How much of asynchronous reactions a tenant may have stored, in number and in bytes. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type QueueLimits, QueueRoom } from '../../../data-plane/reactors/queue-room.ts';
import { ApiError } from '../../../shared/errors.ts';
import { call } from '../../support/http-call.ts';
import { expectProblem } from '../tokens/token-client.ts';
import { startJobRunner } from './job-runner.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

const PLENTY: QueueLimits = {
  ...{ jobs_max: 1e6, bytes_max: 1e9, results_max: 1e6, result_bytes_max: 1e9 },
};
const JOB_BYTES = 20;
const RESULT_BYTES = 100;
const LARGEST_BYTES = 5 * 1024 * 1024;

describe('the room for asynchronous reactions', () => {
  let reactors: Reactors;
  let echo: Reactor;
  before(async () => {
    reactors = await startReactors();
    echo = await reactors.script('return { raw: req.args }');
  });
  after(async () => {
    await reactors?.stop();
  });

  const judge = (limits: Partial<QueueLimits>, tenantId: string) => {
    const room = new QueueRoom(reactors.control.pool, { ...PLENTY, ...limits });
    return room.require(tenantId).then(
      () => 200,
      (error: unknown) => (error instanceof ApiError ? error.status : error),
    );
  };
  const addJobs = (tenantId: string, kind: string, count: number) =>
    reactors.control.pool.query(
      `INSERT INTO jobs (tenant_id, id, kind, claimable_at, sealed)
       SELECT $1, gen_random_uuid(), $2, clock_now() + interval '1 day',
         decode(repeat('00', ${JOB_BYTES}), 'hex') FROM generate_series(1, $3)`,
      [tenantId, kind, count],
    );
  /** `bytes`: in SQL, of each result; `id` is its id. */
  const addResults = (tenantId: string, count: number, bytes = String(RESULT_BYTES)) =>
    reactors.control.pool.query(
      `INSERT INTO reactor_results (tenant_id, id, reactor_id, application_id, sealed)
       SELECT $1, id, $1, $1, decode(repeat('00', ${bytes}), 'hex')
       FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, $2)) made`,
      [tenantId, count],
    );
  /** As many of the largest as are too much. The database packs them, so that they take some 50 MB. */
  const addTooMuch = async (tenantId: string): Promise<void> => {
    const { pool } = reactors.control;
    await pool.query('ALTER TABLE reactor_results ALTER COLUMN sealed SET STORAGE EXTENDED');
    await addResults(tenantId, 1, String(LARGEST_BYTES));
    for (let bytes = LARGEST_BYTES; bytes < 4 * 1024 ** 3; bytes += 64 * LARGEST_BYTES) {
      await pool.query(
        `INSERT INTO reactor_results (tenant_id, id, reactor_id, application_id, sealed)
         SELECT $1, gen_random_uuid(), $1, $1, sealed
         FROM (SELECT sealed FROM reactor_results
               WHERE tenant_id = $1 AND octet_length(sealed) = $2 LIMIT 1) packed,
           generate_series(1, 64)`,
        [tenantId, LARGEST_BYTES],
      );
    }
  };

  it('is bounded for calls and callbacks that wait, together', async () => {
    const tenantId = randomUUID();
    await addJobs(tenantId, 'react', 3);
    await addJobs(tenantId, 'callback', 4);
    expect(await judge({ jobs_max: 8, bytes_max: 8 * JOB_BYTES }, tenantId)).to.equal(200);
    expect(await judge({ jobs_max: 7 }, tenantId)).to.equal(429);
    expect(await judge({ bytes_max: 7 * JOB_BYTES }, tenantId)).to.equal(429);
    expect(await judge({ jobs_max: 1, bytes_max: 1 }, randomUUID())).to.equal(200);
  });

  it('is bounded for results: exactly for few of them, by a sample of many', async () => {
    const [few, many] = [randomUUID(), randomUUID()];
    await addResults(few, 5);
    const six = { results_max: 6, result_bytes_max: 6 * RESULT_BYTES };
    expect(await judge(six, few)).to.equal(200);
    expect(await judge({ results_max: 5 }, few)).to.equal(429);
    expect(await judge({ result_bytes_max: 5 * RESULT_BYTES }, few)).to.equal(429);
    await addResults(many, 8_000);
    const [less, more] = [6_000, 10_000];
    expect(await judge({ results_max: less }, many)).to.equal(429);
    expect(await judge({ result_bytes_max: less * RESULT_BYTES }, many)).to.equal(429);
    const enough = { results_max: more, result_bytes_max: more * RESULT_BYTES };
    expect(await judge(enough, many)).to.equal(200);
    expect(await judge({ results_max: 1 }, randomUUID())).to.equal(200);
  });

  it('is bounded for results whose sizes go by their ids', async () => {
    // In no quarter of all ids may they be hidden from who looks for them.
    for (const quarter of ['0123', '4567', '89ab', 'cdef']) {
      const tenantId = randomUUID();
      const isLarge = `id::text ~ '^[${quarter}]'`;
      await addResults(tenantId, 8_000, `(CASE WHEN ${isLarge} THEN 2000 ELSE 0 END)`);
      expect(await judge({ result_bytes_max: 2e6 }, tenantId), quarter).to.equal(429);
      expect(await judge({ result_bytes_max: 8e6 }, tenantId), quarter).to.equal(200);
    }
  });

  it('is asked for when a call is accepted, and again before its code runs', async () => {
    const react = (json: unknown) =>
      call(reactors.url, `POST /reactors/${echo.id}/react-async`, { key: reactors.key, json });
    const accepted = await react({ args: 'accepted' });
    expect(accepted.status).to.equal(202);
    await addTooMuch(reactors.control.tenant.id);
    let refused = await react({});
    // What was seen counts for a second.
    while (refused.status === 202) refused = await react({});
    expectProblem(refused, 429);
    expect(refused.headers.get('retry-after')).to.match(/^\d+$/);
    const jobs = await startJobRunner(reactors);
    const line = `GET /reactors/${echo.id}/results/${accepted.body.asyncReactorRequestId}`;
    let result = await call(reactors.url, line, { key: reactors.key });
    while (result.status === 404) result = await call(reactors.url, line, { key: reactors.key });
    await jobs.stop();
    expectProblem(result, 429);
    expect(result.body).not.to.have.property('raw');
  });
});
