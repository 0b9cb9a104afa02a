/** Kept answers of megabytes: they are read one by one, and small ones do not wait for them. */
import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { QueryArrayConfig } from 'pg';
import { createRecordReader, type ScopeKey } from '../../../shared/idempotency/record-store.ts';
import type { Pool, Queryable } from '../../../shared/postgres/pool.ts';
import { createTestPool, type TestPool } from '../../support/postgres.ts';

const LARGE_BYTES = 4 * 1024 * 1024;
const tenant_id = randomUUID();

describe('large kept answers', () => {
  let database: TestPool;
  let pool: Pool;
  before(async () => {
    database = await createTestPool(4);
    pool = database.pool;
  });
  after(() => database?.drop());

  async function keep(sealed: Buffer): Promise<ScopeKey> {
    const scope = randomUUID();
    const text = 'INSERT INTO idempotency_records (tenant_id, scope, sealed) VALUES ($1, $2, $3)';
    await pool.query(text, [tenant_id, scope, sealed]);
    return { tenant_id, scope };
  }

  /** The pool, and the bytes that each of its statements has brought. */
  function measured(): { db: Queryable; bytes: number[] } {
    const bytes: number[] = [];
    const query = async (statement: QueryArrayConfig) => {
      const result = await pool.query<unknown[]>(statement);
      const buffers = result.rows.flat().filter((value) => Buffer.isBuffer(value));
      bytes.push(buffers.reduce((sum, { length }) => sum + length, 0));
      return result;
    };
    return { db: { query: query as Queryable['query'] }, bytes };
  }

  it('never share a statement', async () => {
    const large = await keep(randomBytes(LARGE_BYTES));
    const small = await keep(randomBytes(10));
    const { db, bytes } = measured();
    const reader = createRecordReader(db);
    const keys = Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? large : small));
    const found = await Promise.all(keys.map((key) => reader.submit(key)));
    for (const [n, { record }] of found.entries()) {
      expect(record?.sealed?.length).to.equal(n % 3 === 0 ? LARGE_BYTES : 10);
    }
    expect(Math.max(...bytes)).to.equal(LARGE_BYTES);
  });

  it('are in progress only while they are not there', async () => {
    const reader = createRecordReader(pool);
    const nothing = await reader.submit({ tenant_id, scope: randomUUID() });
    expect(nothing.record).to.equal(undefined);
    const scope = randomUUID();
    await pool.query(
      `INSERT INTO idempotency_records (tenant_id, scope, leased_until)
       VALUES ($1, $2, clock_now() + interval '20 seconds')`,
      [tenant_id, scope],
    );
    const { record } = await reader.submit({ tenant_id, scope });
    expect(record).to.include({ sealed: null, is_too_large: false, dead: false });
  });
});
