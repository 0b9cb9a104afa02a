/**
 * What the job process asks for all the time stays cheap on a table that has grown since its statements
 * were planned: none of them may walk it.
 */
import { createHash, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { sweepsOf } from '../../../data-plane/run-sweeps.ts';
import { claimJobs, FIRST_TENANT, isAnyDue, nextTenants } from '../../../shared/jobs/claim-jobs.ts';
import * as store from '../../../shared/jobs/job-store.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createPool, type PoolClient } from '../../../shared/postgres/pool.ts';
import { createJobTable, type JobTable } from './job-table.ts';

const ROWS = 20_000;
const TENANTS = 40;
/** What an honest answer touches, with room: 40 tenants, batches of 20. */
const TOUCHED_MAX = 1_500;

interface PlanNode {
  'Relation Name'?: string;
  'Node Type': string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** Rows that scans of tables have looked at. */
function touched(node: PlanNode): number {
  const { 'Actual Rows': rows = 0, 'Actual Loops': loops = 0 } = node;
  const own =
    node['Relation Name'] === undefined
      ? 0
      : (rows + (node['Rows Removed by Filter'] ?? 0)) * loops;
  return own + (node.Plans ?? []).reduce((sum, plan) => sum + touched(plan), 0);
}

/** Runs what the session has planned as a statement of that name, and takes it back. */
async function cost(client: PoolClient, name: string, values: string): Promise<number> {
  await client.query('BEGIN; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off');
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
    `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE "${name}" (${values})`,
  );
  await client.query('ROLLBACK');
  return touched(rows[0]?.['QUERY PLAN'][0].Plan as PlanNode);
}

/** As `md5(text)::uuid`. */
const uuidOf = (text: string | number): string => createHash('md5').update(`${text}`).digest('hex');
const arrayOf = (values: readonly (string | number)[]): string => `'{${values.join(',')}}'`;
const NUMBERS = Array.from({ length: 20 }, (_, index) => index + 1);

describe('statements of the job process', function () {
  this.timeout(60_000);
  let table: JobTable;
  let client: PoolClient;
  before(async () => {
    table = await createJobTable();
    client = await table.pool.connect();
  });
  after(async () => {
    client?.release();
    await table?.drop();
  });

  it('jobs are found by their indexes, whatever the table looked like at the start', async () => {
    const tenant = randomUUID();
    const held = { tenant_id: tenant, id: randomUUID(), lease_id: randomUUID() };
    const all = async (): Promise<void> => {
      await isAnyDue(client, 'react');
      await nextTenants(client, 'react', FIRST_TENANT);
      await claimJobs(client, 'react', [{ tenant_id: tenant, count: 1 }], 1);
      await store.extendLeases(client, [held]);
      await store.beginJob(client, held);
      await store.finishJob(client, held);
      await store.retryJob(client, held, 0);
      await store.releaseJob(client, held, 0, true);
    };
    await all();
    await table.load(
      `INSERT INTO jobs (tenant_id, id, kind, sealed, lease_id, claimable_at)
       SELECT md5((g % ${TENANTS})::text)::uuid, md5(g::text)::uuid, 'react', 'x', md5(g::text)::uuid,
         clock_now() - g * interval '1 s'
       FROM generate_series(1, ${ROWS}) AS g`,
    );
    // What stays for a day, and jobs of another kind.
    await table.load(
      `INSERT INTO jobs (tenant_id, id, kind, sealed, finished_at)
       SELECT md5((g % ${TENANTS})::text)::uuid, gen_random_uuid(), k.kind, '', k.finished_at
       FROM generate_series(1, ${ROWS / 2}) AS g,
         (VALUES ('react', clock_now()), ('callback', NULL)) AS k (kind, finished_at)`,
    );
    const ids = arrayOf(NUMBERS.map(uuidOf));
    const owners = arrayOf(NUMBERS.map((number) => uuidOf(number % TENANTS)));
    const counts = arrayOf(NUMBERS.map(() => 20));
    const one = `'${uuidOf(1)}', '${uuidOf(1)}', '${uuidOf(1)}'`;
    const costs = {
      'any-job-due': await cost(client, 'any-job-due', `'react'`),
      'next-job-tenants': await cost(client, 'next-job-tenants', `'react', '${FIRST_TENANT}'`),
      'claim-jobs': await cost(client, 'claim-jobs', `'react', ${owners}, ${counts}, 20`),
      'extend-leases': await cost(client, 'extend-leases', `${owners}, ${ids}, ${ids}`),
      'begin-job': await cost(client, 'begin-job', one),
      'finish-job': await cost(client, 'finish-job', one),
      'retry-job': await cost(client, 'retry-job', `${one}, 0`),
      'release-job': await cost(client, 'release-job', `${one}, 0, 0`),
    };
    for (const [name, found] of Object.entries(costs)) {
      expect(found, name).to.be.within(1, TOUCHED_MAX);
    }
    await client.query('TRUNCATE jobs');
  });

  it('what is due is found by its index, whatever the tables looked like at the start', async () => {
    const log = createLogger('test', 'silent');
    const { connectionString } = table.database;
    // One connection: the statements that are looked at are those that were planned.
    const pool = createPool({ connectionString, max: 1, applicationName: 'test', log });
    for (const { run } of sweepsOf(pool)) await run(20);
    await table.load(
      `INSERT INTO tokens (tenant_id, id, type, container, sealed, expires_at, created_by)
       SELECT md5((g % ${TENANTS})::text)::uuid, 't' || g, 'token', '/', 'x',
         clock_now() - interval '1 s', gen_random_uuid() FROM generate_series(1, ${ROWS}) AS g;
       INSERT INTO token_terms SELECT tenant_id, id, 'h' FROM tokens;
       INSERT INTO token_cvcs SELECT tenant_id, id, 'x', clock_now() FROM tokens;
       INSERT INTO jobs (tenant_id, id, kind, sealed, finished_at)
       SELECT gen_random_uuid(), gen_random_uuid(), 'react', '', clock_now() - interval '2 days'
       FROM generate_series(1, ${ROWS});
       INSERT INTO config_changes (tenant_id, version, kind, id, previous_version, changed_at)
       SELECT gen_random_uuid(), gen_random_uuid(), 'proxy', 'p', gen_random_uuid(),
         clock_now() - interval '2 days' FROM generate_series(1, ${ROWS});
       INSERT INTO idempotency_records (tenant_id, scope, created_at)
       SELECT gen_random_uuid(), gen_random_uuid(), clock_now() - interval '2 days'
       FROM generate_series(1, ${ROWS});
       INSERT INTO reactor_results (tenant_id, id, reactor_id, application_id, sealed, created_at)
       SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'x',
         clock_now() - interval '2 days' FROM generate_series(1, ${ROWS})`,
    );
    const planned = await pool.connect();
    const tables = [
      'token_cvcs',
      'jobs',
      'config_changes',
      'idempotency_records',
      'reactor_results',
    ];
    for (const name of ['sweep-expired-tokens', ...tables.map((one) => `sweep-${one}`)]) {
      expect(await cost(planned, name, '20'), name).to.be.within(1, TOUCHED_MAX);
    }
    planned.release();
    await pool.end();
  });
});
