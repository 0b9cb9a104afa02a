/** The job process as operators run it: beside the planes, by itself, killed and drained. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createApplication } from '../../security/planes.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../../support/sallyport.ts';
import { type Program, startProgram } from '../../support/start-program.ts';
import { createJobTable, type JobTable } from './job-table.ts';

const REQUESTS = 60;
const KILLS = 3;
const KILL_EVERY_MS = 2_000;
/** Long enough that a kill hits some in the middle. */
const CODE = `module.exports = async ({ args }) => {
  await new Promise((resolve) => setTimeout(resolve, 400));
  return { raw: args };
};`;

describe('the job process', function () {
  this.timeout(120_000);

  describe('beside the planes', () => {
    let sallyport: TestSallyport;
    let key: string;
    let reactorId: string;
    before(async () => {
      sallyport = await startSallyport({ SANDBOX_HOSTS: '1', LOG_LEVEL: 'info' });
      const { managementKey } = sallyport.tenant;
      const rules = [
        {
          ...{ priority: 1, container: '/', transform: 'reveal' },
          permissions: ['token:use', 'token:create'],
        },
      ];
      ({ key } = await createApplication(sallyport.baseUrl, sallyport.tenant, { rules }));
      const json = { name: 'Slow', code: CODE };
      const made = await call(sallyport.baseUrl, 'POST /reactors', { key: managementKey, json });
      expect(made.status, made.text).to.equal(201);
      reactorId = String(made.body.id);
    });
    after(() => sallyport?.stop());

    const accept = async (args: JsonObject): Promise<string> => {
      const json = { args };
      const line = `POST /reactors/${reactorId}/react-async`;
      const answer = await call(sallyport.baseUrl, line, { key, json });
      expect(answer.status, answer.text).to.equal(202);
      return String(answer.body.asyncReactorRequestId);
    };
    const resultOf = async (id: string) => {
      for (;;) {
        const line = `GET /reactors/${reactorId}/results/${id}`;
        const answer = await call(sallyport.baseUrl, line, { key });
        if (answer.status !== 404) return answer;
        await delay(50);
      }
    };

    it('is killed again and again: every accepted reaction has one result in the end', async () => {
      const ids = await Promise.all(
        Array.from({ length: REQUESTS }, (_, number) => accept({ number })),
      );
      const pids = new Set<number | undefined>();
      for (let kill = 0; kill < KILLS; kill += 1) {
        await delay(KILL_EVERY_MS);
        const pid = sallyport.planes.jobs.pid();
        pids.add(pid);
        if (pid !== undefined) process.kill(pid, 'SIGKILL');
      }
      const results = await Promise.all(ids.map(resultOf));
      const done = results.filter(({ status }) => status === 200);
      const interrupted = results.filter(({ text }) => text.includes('interrupted'));
      expect(done.length + interrupted.length).to.equal(REQUESTS);
      for (const { body } of done) expect(body.raw).to.have.keys(['number']);
      // A result stays what it is.
      const again = await Promise.all(ids.map(resultOf));
      expect(again.map(({ text }) => text)).to.deep.equal(results.map(({ text }) => text));
      expect(pids.size).to.equal(KILLS);
    });

    it('is part of the report, and ready', async () => {
      // It may just have been started again.
      while (!(await sallyport.planes.readiness()).ready) await delay(50);
      const metrics = await sallyport.planes.metrics();
      expect(metrics).to.match(/^sallyport_jobs_total\{kind="react",outcome="done"\} [1-9]/m);
      expect(metrics).to.contain('sallyport_job_delay_seconds_bucket');
      expect(metrics).to.contain('sallyport_swept_rows_total');
    });
  });

  describe('by itself', () => {
    let table: JobTable;
    let program: Program | undefined;
    before(async () => {
      table = await createJobTable();
    });
    after(async () => {
      program?.child.kill('SIGKILL');
      await program?.finished;
      await table?.drop();
    });

    it('sweeps, reports on a port of its own and ends with 0 on SIGTERM', async () => {
      const { connectionString, kek } = table.database;
      const tenant = randomUUID();
      await table.pool.query(
        `INSERT INTO tokens (tenant_id, id, type, container, sealed, expires_at, created_by)
         SELECT $1, 'due-' || g, 'token', '/general/high/', 'x', clock_now() - interval '1 s', $1
         FROM generate_series(1, 2500) AS g`,
        [tenant],
      );
      const started = startProgram('data-plane/jobs-main.ts', [], {
        ...{ DATABASE_URL: connectionString, SALLYPORT_KEK: kek, METRICS_PORT: '0' },
        ...{ DATABASE_POOL_MAX: '4', LOG_LEVEL: 'info' },
      });
      program = started;
      const port = async (): Promise<string | undefined> =>
        /"port":([0-9]+),"msg":"metrics are served"/.exec(started.stderr())?.[1];
      await table.until('metrics', async () => (await port()) !== undefined);
      const url = `http://localhost:${await port()}`;
      await table.until('ready', async () => (await call(url, 'GET /readyz')).status === 200);
      const left = 'SELECT count(*) FROM tokens WHERE tenant_id = $1';
      await table.until('swept', async () => (await table.count(left, [tenant])) === 0);
      const counted = `SELECT coalesce((SELECT sum(delta) FROM token_count_deltas), 0)
        + coalesce((SELECT sum(count) FROM token_counts), 0) AS count`;
      expect(await table.count(counted)).to.equal(-2_500);
      const metrics = await (await fetch(`${url}/metrics`)).text();
      expect(metrics).to.contain('sallyport_swept_rows_total{subject="expired_tokens"} 2500');
      started.child.kill('SIGTERM');
      const { code, signal } = await started.finished;
      expect([code, signal]).to.deep.equal([0, null]);
    });

    it('does not start without the database’s address, and says which variable is missing', async () => {
      const started = startProgram('data-plane/jobs-main.ts', [], { METRICS_PORT: '0' });
      const { code, stderr } = await started.finished;
      expect(code).to.equal(1);
      expect(stderr).to.equal('sallyport jobs: DATABASE_URL must be set\n');
    });
  });
});
