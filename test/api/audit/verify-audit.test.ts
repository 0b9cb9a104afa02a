import { expect } from 'chai';
import { readHead, type StoredCheckpoint } from '../../../shared/audit/checkpoint-store.ts';
import {
  type AuditVerdict,
  type LoggedHead,
  verifyAudit,
} from '../../../shared/audit/verify-audit.ts';
import { insertAudit } from '../../../shared/audit/write-audit.ts';
import { writeCheckpoint } from '../../../shared/audit/write-checkpoint.ts';
import { type Installation, loadInstallation } from '../../../shared/crypto/installation.ts';
import { localKeyEncryption } from '../../../shared/crypto/local-key.ts';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createPool, type Pool } from '../../../shared/postgres/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts';
import { entryOf, settled, writeEach } from './trail.ts';

const OTHER_TENANT = '22222222-2222-4222-8222-222222222222';

describe('the checkpoints of the audit trail', () => {
  let database: TestDatabase;
  let pool: Pool;
  let installation: Installation;

  before(async () => {
    database = await createTestDatabase();
    const kek = localKeyEncryption(Buffer.from(database.kek, 'base64'));
    const log = createLogger('test', 'silent');
    const { connectionString } = database;
    pool = createPool({ connectionString, max: 4, applicationName: 'test', log });
    installation = await loadInstallation(pool, kek);
  });

  beforeEach(async () => {
    await pool.query('TRUNCATE audit_log, audit_checkpoints, audit_checkpoint_parts');
    await pool.query('UPDATE audit_positions SET base = 0');
  });

  after(async () => {
    await pool.end();
    await database.drop();
  });

  const checkpointNow = () => writeCheckpoint({ pool, installation, months: 12 });
  /** When no transaction of another database of the server is in the way either. */
  async function checkpoint(): Promise<StoredCheckpoint | undefined> {
    await settled(pool);
    return checkpointNow();
  }
  const verify = (logged?: LoggedHead): Promise<AuditVerdict> =>
    verifyAudit(pool, installation, logged);
  const problems = async (logged?: LoggedHead): Promise<string[]> =>
    (await verify(logged)).problems.map(({ kind, number }) => `${kind} ${number}`);

  /** Three checkpoints of three rows each. */
  async function threeCheckpoints(): Promise<void> {
    for (let number = 1; number <= 3; number += 1) {
      await writeEach(pool, [entryOf(), entryOf(), entryOf({ tenant_id: OTHER_TENANT })]);
      expect(await checkpoint()).to.include({ number, row_count: 3 });
    }
  }

  /** Changes one row of the n-th checkpoint. */
  const inCheckpoint = (number: number): string => `
    position >= (SELECT coalesce(max(to_position), 0) FROM audit_checkpoints WHERE number < ${number})
    AND position < (SELECT to_position FROM audit_checkpoints WHERE number = ${number})
    AND tenant_id = '${OTHER_TENANT}'`;

  it('find nothing wrong with a trail that nobody touched', async () => {
    await threeCheckpoints();
    await writeEach(pool, [entryOf()]);
    const verdict = await verify();
    expect(verdict).to.deep.include({ problems: [], checkpoints: 3, rows: 9, uncovered: 1 });
    const { number, digest } = (await readHead(pool)) ?? {};
    expect(verdict.head).to.deep.equal({ number, digest });
    expect(await checkpoint()).to.include({ number: 4, row_count: 1 });
    expect(await checkpoint()).to.equal(undefined);
  });

  const changes: [string, string, string][] = [
    ['a changed row', `UPDATE audit_log SET actor_id = gen_random_uuid()`, 'rows_changed 2'],
    [
      'a changed time',
      `UPDATE audit_log SET created_at = created_at - interval '1 us'`,
      'rows_changed 2',
    ],
    ['a changed place', `UPDATE audit_log SET position = position - 1`, 'rows_changed 2'],
    ['a deleted row', `DELETE FROM audit_log`, 'rows_missing 2'],
  ];
  for (const [what, statement, problem] of changes) {
    it(`find ${what}, and say where`, async () => {
      await threeCheckpoints();
      const { rowCount } = await pool.query(`${statement} WHERE ${inCheckpoint(2)}`);
      expect(rowCount).to.equal(1);
      const verdict = await verify();
      expect(verdict.problems.map(({ kind, number }) => `${kind} ${number}`)).to.deep.equal([
        problem,
      ]);
      const month = `${new Date().toISOString().slice(0, 7)}-01`;
      expect(verdict.problems[0]).to.deep.include({ tenant_id: OTHER_TENANT, month });
    });
  }

  it('find rows that have changed places', async () => {
    await threeCheckpoints();
    const [first, second] = (
      await pool.query<{ id: string; position: string }>(
        'SELECT id, position FROM audit_log WHERE tenant_id <> $1 ORDER BY position LIMIT 2',
        [OTHER_TENANT],
      )
    ).rows;
    const move = 'UPDATE audit_log SET position = $2 WHERE id = $1';
    await pool.query(move, [first?.id, second?.position]);
    await pool.query(move, [second?.id, first?.position]);
    expect(await problems()).to.deep.equal(['rows_changed 1']);
  });

  it('find a row that was put in later, as another or by itself', async () => {
    await threeCheckpoints();
    const copy = (columns: string, where: string) =>
      pool.query(
        `INSERT INTO audit_log (tenant_id, created_at, actor_type, entity_type, operation, denied,
           trace_id, position)
         SELECT ${columns}, created_at, actor_type, entity_type, operation, denied, 'x', position
         FROM audit_log WHERE ${where}`,
      );
    await copy('tenant_id', inCheckpoint(3));
    await copy(`'33333333-3333-4333-8333-333333333333'`, inCheckpoint(1));
    expect(await problems()).to.have.members(['rows_added 1', 'rows_added 3']);
  });

  it('find a row that was put in below all positions that there can be', async () => {
    await threeCheckpoints();
    await pool.query(
      `INSERT INTO audit_log (tenant_id, created_at, actor_type, entity_type, operation, denied,
         trace_id, position)
       SELECT '33333333-3333-4333-8333-333333333333', created_at, actor_type, entity_type,
         operation, denied, 'x', -1 FROM audit_log LIMIT 1`,
    );
    expect(await problems()).to.deep.equal(['rows_added 1']);
  });

  it('name no more than some of very many that are missing', async () => {
    await threeCheckpoints();
    const far = 'UPDATE audit_checkpoints SET number = 9000000000000 WHERE number = 3';
    await pool.query(far);
    expect((await verify()).problems).to.have.lengthOf.within(1, 1_010);
  });

  it('find a row that was moved into another month', async () => {
    await threeCheckpoints();
    await pool.query(
      `UPDATE audit_log SET created_at = created_at - interval '40 days' WHERE ${inCheckpoint(2)}`,
    );
    expect(await problems()).to.have.members(['rows_missing 2', 'rows_added 2']);
  });

  const checkpointChanges: [string, string, string[]][] = [
    [
      'a removed checkpoint',
      'DELETE FROM audit_checkpoints WHERE number = 2',
      ['checkpoint_missing 2'],
    ],
    [
      'a removed first checkpoint',
      'DELETE FROM audit_checkpoints WHERE number = 1',
      ['checkpoint_missing 1'],
    ],
    [
      'a changed count',
      'UPDATE audit_checkpoints SET row_count = 2 WHERE number = 2',
      ['checkpoint_changed 2'],
    ],
    [
      'months given up',
      `UPDATE audit_checkpoints SET kept_from = '2999-01-01' WHERE number = 3`,
      ['checkpoint_changed 3'],
    ],
    [
      'a removed part',
      `DELETE FROM audit_checkpoint_parts WHERE number = 2 AND tenant_id = '${OTHER_TENANT}'`,
      ['checkpoint_changed 2', 'rows_added 2'],
    ],
    [
      'a changed digest',
      `UPDATE audit_checkpoints SET digest = decode(repeat('00', 32), 'hex') WHERE number = 2`,
      ['checkpoint_forged 2', 'checkpoint_changed 2', 'checkpoint_changed 3'],
    ],
    [
      'a signature of somebody else',
      `UPDATE audit_checkpoints SET signature = sha256(digest) WHERE number = 2`,
      ['checkpoint_forged 2'],
    ],
    [
      'checkpoints in another order',
      `UPDATE audit_checkpoints SET number = CASE number WHEN 1 THEN -2 ELSE -1 END
         WHERE number < 3;
       UPDATE audit_checkpoints SET number = -number WHERE number < 0`,
      ['checkpoint_changed 1', 'checkpoint_changed 2', 'checkpoint_changed 3'],
    ],
  ];
  for (const [what, statement, expected] of checkpointChanges) {
    it(`find ${what}`, async () => {
      await threeCheckpoints();
      await pool.query(statement);
      expect(await problems()).to.include.members(expected);
    });
  }

  it('cannot see by themselves that the end was cut off, but a head from the log shows it', async () => {
    await threeCheckpoints();
    const { number = 0, digest = '' } = (await readHead(pool)) ?? {};
    const logged = { number, digest };
    expect(await problems(logged)).to.deep.equal([]);
    await pool.query(
      `DELETE FROM audit_log WHERE ${inCheckpoint(3).replace(/AND tenant_id.*/, '')}`,
    );
    await pool.query('DELETE FROM audit_checkpoint_parts WHERE number = 3');
    await pool.query('DELETE FROM audit_checkpoints WHERE number = 3');
    expect(await problems()).to.deep.equal([]);
    expect(await problems(logged)).to.deep.equal(['head_missing 3']);
    await writeEach(pool, [entryOf()]);
    await checkpoint();
    expect(await problems()).to.deep.equal([]);
    expect(await problems(logged)).to.deep.equal(['head_changed 3']);
  });

  it('wait for a transaction that began earlier and commits later', async () => {
    const slow = await pool.connect();
    try {
      await slow.query('BEGIN');
      await insertAudit(slow, [entryOf({ trace_id: 'slow' })]);
      await writeEach(pool, [entryOf(), entryOf()]);
      // Nothing from the open transaction on is covered, though others have committed behind it.
      expect(await checkpointNow()).to.equal(undefined);
      await slow.query('COMMIT');
    } finally {
      slow.release();
    }
    expect(await checkpoint()).to.include({ row_count: 3 });
    expect(await problems()).to.deep.equal([]);
  });

  it('are written by one node at a time', async () => {
    await writeEach(pool, [entryOf(), entryOf()]);
    await settled(pool);
    const written = await Promise.all([checkpointNow(), checkpointNow(), checkpointNow()]);
    expect(written.filter((one) => one !== undefined)).to.have.lengthOf(1);
    expect(await problems()).to.deep.equal([]);
  });

  it('have the time that a long trail takes to be put in order after a restore', async () => {
    await threeCheckpoints();
    await pool.query(`
      UPDATE audit_checkpoints SET to_position = to_position + 1000000;
      CREATE FUNCTION slow_audit() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(2.2); RETURN NULL; END';
      CREATE TRIGGER slow_audit AFTER UPDATE ON audit_log EXECUTE FUNCTION slow_audit()`);
    try {
      await writeEach(pool, [entryOf()]);
      await checkpoint();
    } finally {
      await pool.query('DROP TRIGGER slow_audit ON audit_log; DROP FUNCTION slow_audit()');
    }
    expect(await checkpoint()).to.include({ number: 4, row_count: 1 });
  });

  it('go on after a restore into a cluster with lower transaction ids', async () => {
    // As if all this had been written in a cluster that had seen many more transactions.
    await pool.query('UPDATE audit_positions SET base = base + 1000000');
    await threeCheckpoints();
    await writeEach(pool, [entryOf({ trace_id: 'uncovered when it was dumped' })]);
    await pool.query('UPDATE audit_positions SET base = base - 1000000');
    await writeEach(pool, [entryOf({ trace_id: 'before anybody noticed' })]);
    // How much the first ones cover depends on who else writes in this cluster at that moment.
    let rows = (await checkpoint())?.row_count ?? 0;
    await writeEach(pool, [entryOf()]);
    while (rows < 3) rows += (await checkpoint())?.row_count ?? 0;
    expect(await checkpoint()).to.equal(undefined);
    expect(await verify()).to.deep.include({ problems: [], rows: 12, uncovered: 0 });
  });
});
