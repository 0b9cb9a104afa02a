import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { AuditEntry } from '../../../shared/audit/audit-entry.ts';
import { AuditQueue } from '../../../shared/audit/audit-queue.ts';
import { insertAudit } from '../../../shared/audit/write-audit.ts';
import { ApiError } from '../../../shared/errors.ts';
import { createAuditMetrics } from '../../../shared/observability/audit-metrics.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createMetrics } from '../../../shared/observability/metrics.ts';
import { createPool, type Pool } from '../../../shared/postgres/pool.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../../support/database-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts';
import { entryOf, trailOf } from './trail.ts';

const TENANT = '11111111-1111-4111-8111-111111111111';

describe('audit rows that are written in batches', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  /** Through the proxy. */
  let pool: Pool;
  let direct: Pool;
  const log = createLogger('test', 'silent');
  const queues: AuditQueue[] = [];

  function queueOf(rowsMax?: number): AuditQueue {
    const metrics = createAuditMetrics(createMetrics({ version: 'test' }, pool));
    const queue = new AuditQueue({ db: pool, log, metrics, ...(rowsMax && { rowsMax }) });
    queues.push(queue);
    return queue;
  }
  const entries = (count: number, own: Partial<AuditEntry> = {}): AuditEntry[] =>
    Array.from({ length: count }, () => entryOf(own));
  const written = async (): Promise<number> => (await trailOf(direct, TENANT)).length;
  /** How many are there when `count` are, or a second has passed. */
  async function arrived(count: number): Promise<number> {
    const deadline = performance.now() + 1_000;
    while ((await written()) < count && performance.now() < deadline) await delay(5);
    return written();
  }

  before(async () => {
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.connectionString);
    const options = { max: 2, applicationName: 'test', log };
    pool = createPool({ ...options, connectionString: proxy.connectionString });
    direct = createPool({ ...options, connectionString: database.connectionString });
  });
  afterEach(async () => {
    await Promise.all(queues.splice(0).map((queue) => queue.close()));
    await direct.query('TRUNCATE audit_log');
  });
  after(async () => {
    await Promise.all([pool.end(), direct.end()]);
    await proxy.close();
    await database.drop();
  });

  it('are there soon after they were recorded, all of them, at their times', async () => {
    const queue = queueOf();
    const before = Date.now();
    for (let batch = 0; batch < 25; batch += 1) {
      expect(queue.record(entries(100))).to.equal(undefined);
    }
    expect(await arrived(2_500)).to.equal(2_500);
    const { rows } = await direct.query<{ first: Date; last: Date }>(
      'SELECT min(created_at) AS first, max(created_at) AS last FROM audit_log',
    );
    // Recorded at once: what was written later is not told as later.
    expect(rows[0]?.first.getTime()).to.be.at.least(before - 50);
    expect((rows[0]?.last.getTime() ?? 0) - (rows[0]?.first.getTime() ?? 0)).to.be.below(1_000);
  });

  it('keep each column in its row, whatever the texts are', async () => {
    const queue = queueOf();
    const odd = [
      entryOf({ entity_id: 'a\nb', trace_id: 'first' }),
      entryOf({ entity_id: `{"a",NULL,'b'}`, container: '/x/', trace_id: 'second' }),
      entryOf({ entity_id: null, container: undefined, actor_id: null, trace_id: 'third' }),
      entryOf({ entity_id: 'NULL', via_type: 'proxy', via_id: TENANT, trace_id: 'fourth' }),
    ];
    queue.record(odd);
    await queue.flush();
    const rows = await trailOf(direct, TENANT);
    const told = rows.map((row) => [row.trace_id, row.entity_id, row.container, row.via_id]);
    expect(told).to.have.deep.members([
      ['first', 'a b', '/general/', null],
      ['second', `{"a",NULL,'b'}`, '/x/', null],
      ['third', null, null, null],
      ['fourth', 'NULL', '/general/', TENANT],
    ]);
  });

  it('wait for a database that is away, and lose nothing', async () => {
    const queue = queueOf();
    queue.record(entries(10));
    await proxy.goAway();
    queue.record(entries(10));
    await delay(300);
    await proxy.comeBack();
    await queue.flush();
    // Those that were under way when the connection was cut may be there twice, never not at all.
    expect(await written()).to.be.at.least(20);
  });

  it('hold back answers when they are too many, and refuse when it takes too long', async () => {
    const queue = queueOf(20);
    await proxy.goAway();
    expect(queue.record(entries(20))).to.equal(undefined);
    const waiting = queue.record(entries(1, { trace_id: 'waited' }));
    expect(waiting).to.be.a('promise');
    await proxy.comeBack();
    await waiting;
    await queue.flush();
    expect((await trailOf(direct, TENANT, 'waited')).length).to.equal(1);

    await proxy.goAway();
    queue.record(entries(20));
    const refused = await Promise.resolve(queue.record(entries(1, { trace_id: 'refused' }))).catch(
      (error: unknown) => error,
    );
    expect(refused).to.be.instanceOf(ApiError).with.property('code', 'unavailable');
    await proxy.comeBack();
    await queue.flush();
    expect(await trailOf(direct, TENANT, 'refused')).to.deep.equal([]);
  });

  it('are written although one of them cannot be', async () => {
    const queue = queueOf();
    queue.record([...entries(5), entryOf({ actor_id: 'no uuid' }), ...entries(5)]);
    await queue.flush();
    expect(await written()).to.equal(10);
  });

  it('are all there when it is closed', async () => {
    const queue = queueOf();
    queue.record(entries(1_500));
    await queue.close();
    expect(await written()).to.equal(1_500);
  });

  it('commit with the change they tell of, or not at all', async () => {
    const client = await direct.connect();
    try {
      await client.query('BEGIN');
      await insertAudit(client, entries(3));
      await client.query('ROLLBACK');
      expect(await written()).to.equal(0);
    } finally {
      client.release();
    }
  });
});
