import { expect } from 'chai';
import { keepMonths, writeCheckpoints } from '../../../shared/audit/keep-audit.ts';
import { ensurePartitions } from '../../../shared/audit/partitions.ts';
import { verifyAudit } from '../../../shared/audit/verify-audit.ts';
import { insertAudit } from '../../../shared/audit/write-audit.ts';
import { type Installation, loadInstallation } from '../../../shared/crypto/installation.ts';
import { localKeyEncryption } from '../../../shared/crypto/local-key.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createPool, type Pool } from '../../../shared/postgres/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts';
import { entryOf, settled } from './trail.ts';

const DAY_S = 86_400;
const { signal } = new AbortController();
const log = createLogger('test', 'silent');

describe('the months of the audit trail', () => {
  let database: TestDatabase;
  let installation: Installation;
  const pools: Pool[] = [];

  /** Connections whose clock is this many days ahead. */
  const ahead = (days: number): Pool => {
    const { connectionString } = database;
    const clockOffsetSeconds = days * DAY_S;
    const pool = createPool({
      ...{ connectionString, max: 3, applicationName: 'test', clockOffsetSeconds, log },
    });
    pools.push(pool);
    return pool;
  };
  const keep = async (pool: Pool, months = 12): Promise<void> => {
    const options = { pool, installation, months, log, signal };
    await settled(pool);
    await writeCheckpoints(options);
    await keepMonths(options);
  };
  const partitionsOf = async (pool: Pool): Promise<string[]> => {
    const { rows } = await pool.query<{ name: string }>(
      `SELECT DISTINCT tableoid::regclass::text AS name FROM audit_log ORDER BY 1`,
    );
    return rows.map(({ name }) => name);
  };
  const monthOf = async (pool: Pool): Promise<string> => {
    const { rows } = await pool.query<{ month: string }>(
      `SELECT to_char(clock_now() AT TIME ZONE 'UTC', '"audit_log_"YYYY_MM') AS month`,
    );
    return rows[0]?.month ?? '';
  };

  beforeEach(async () => {
    database = await createTestDatabase();
    const kek = localKeyEncryption(Buffer.from(database.kek, 'base64'));
    installation = await loadInstallation(ahead(0), kek);
  });
  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.end()));
    await database.drop();
  });

  it('have a partition each, made before they begin', async () => {
    const now = ahead(0);
    await insertAudit(now, [entryOf()]);
    await insertAudit(ahead(28), [entryOf()]);
    expect(await partitionsOf(now)).to.not.include('audit_log_default');
    expect(await partitionsOf(now)).to.include(await monthOf(now));
    expect(await ensurePartitions(now)).to.deep.equal([]);
  });

  it('take rows that nobody made one for, when somebody does', async () => {
    const later = ahead(100);
    await insertAudit(later, [entryOf(), entryOf()]);
    expect(await partitionsOf(later)).to.deep.equal(['audit_log_default']);
    await keep(later);
    expect(await partitionsOf(later)).to.deep.equal([await monthOf(later)]);
    expect((await verifyAudit(later, installation, undefined)).problems).to.deep.equal([]);
    await insertAudit(later, [entryOf()]);
    expect(await partitionsOf(later)).to.deep.equal([await monthOf(later)]);
  });

  it('stay in the default partition when they are too many to move at once', async () => {
    const later = ahead(100);
    for (let rows = 0; rows <= 10_000; rows += 1_000) {
      await insertAudit(
        later,
        Array.from({ length: 1_000 }, () => entryOf()),
      );
    }
    expect(await ensurePartitions(later)).to.have.lengthOf(2);
    await insertAudit(later, [entryOf()]);
    expect(await partitionsOf(later)).to.deep.equal(['audit_log_default']);
  });

  it('wait for nobody, and hold up nobody: a writer that takes long is left alone', async () => {
    const later = ahead(100);
    const writer = await later.connect();
    try {
      await writer.query('BEGIN');
      await insertAudit(writer, [entryOf()]);
      expect(await ensurePartitions(later)).to.have.lengthOf(2);
      await writer.query('COMMIT');
    } finally {
      writer.release();
    }
    expect(await ensurePartitions(later)).to.deep.equal([]);
  });

  it('are made by several nodes at once', async () => {
    const later = ahead(100);
    await insertAudit(later, [entryOf()]);
    await Promise.all([ensurePartitions(later), ensurePartitions(later), ensurePartitions(later)]);
    expect(await ensurePartitions(later)).to.deep.equal([]);
    expect(await partitionsOf(later)).to.deep.equal([await monthOf(later)]);
  });

  it('are dropped after their time, and the trail stays whole', async () => {
    const [first, second, last] = [ahead(0), ahead(300), ahead(620)];
    await insertAudit(first, [entryOf(), entryOf()]);
    await keep(first);
    // Left in the default partition, where it is deleted in its time, too.
    await insertAudit(ahead(70), [entryOf()]);
    await insertAudit(second, [entryOf()]);
    await keep(second);
    expect(await partitionsOf(first))
      .to.include('audit_log_default')
      .and.have.lengthOf(3);
    await insertAudit(last, [entryOf()]);
    await keep(last);
    expect(await partitionsOf(first)).to.deep.equal([await monthOf(second), await monthOf(last)]);
    const verdict = await verifyAudit(last, installation, undefined);
    expect(verdict).to.deep.include({ problems: [], rows: 5 });
    await last.query(`DELETE FROM ${await monthOf(second)}`);
    const { problems } = await verifyAudit(last, installation, undefined);
    expect(problems.map(({ kind }) => kind)).to.deep.equal(['rows_missing']);
  });

  it('do not come back when more of them are to be kept', async () => {
    const [now, later] = [ahead(0), ahead(100)];
    await insertAudit(now, [entryOf()]);
    await keep(now);
    await insertAudit(later, [entryOf()]);
    await keep(later, 1);
    expect(await partitionsOf(now)).to.deep.equal([await monthOf(later)]);
    await insertAudit(later, [entryOf()]);
    await keep(later, 12);
    expect((await verifyAudit(later, installation, undefined)).problems).to.deep.equal([]);
  });
});
