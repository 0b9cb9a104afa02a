/** One statement reads tokens of many tenants: everybody gets their own, whatever the ids look like. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { createTokenReaders } from '../../../shared/tokens/batch-reader.ts';
import {
  readRows,
  SEALED_TOKENS,
  type TokenKey,
  WHOLE_TOKENS,
} from '../../../shared/tokens/read-rows.ts';
import { createTestPool, type TestPool } from '../../support/postgres.ts';
import { Random } from '../../support/random.ts';

const TENANTS = Array.from({ length: 7 }, () => randomUUID() as string);
const NO_TENANT = randomUUID();
/** Ids that tenants share, and that could break a list, a text or a line of one. */
const IDS = [
  'abc',
  ...['with space', "quo'te", 'quo"te', 'comma,comma', '(a)', 'NULL', 'null', '$1'],
  ...['käse', '🂡🂢', 'a\u00a0b', '日本語', 'A'.repeat(400), '4242424242424242'],
];

describe('tokens of many tenants in one statement', () => {
  let test: TestPool;
  before(async () => {
    test = await createTestPool(4);
    // Each token's payload says whose it is: tenant and id.
    await test.pool.query(
      `INSERT INTO tenants (id, name, config_version)
       SELECT id, 'T', md5(id::text)::uuid FROM unnest($1::uuid[]) AS t (id)`,
      [TENANTS],
    );
    await test.pool.query(
      `INSERT INTO tokens (tenant_id, id, type, container, sealed, expires_at, created_by)
       SELECT t.id, k.id, 'token', '/', convert_to(t.id || k.id, 'UTF8'),
         CASE WHEN k.id = 'NULL' THEN now() - interval '1 s' END, t.id
       FROM unnest($1::uuid[]) AS t (id), unnest($2::text[]) AS k (id)`,
      [TENANTS, IDS],
    );
  });
  after(() => test.drop());

  const versionOf = async (tenantId: string): Promise<string | undefined> => {
    const sql = 'SELECT config_version FROM tenants WHERE id = $1';
    const { rows } = await test.pool.query<{ config_version: string }>(sql, [tenantId]);
    return rows[0]?.config_version;
  };

  for (const [kind, reading] of Object.entries({ WHOLE_TOKENS, SEALED_TOKENS })) {
    it(`go to who asked for them, with the version of their tenant: ${kind}`, async () => {
      const random = new Random(20_261_122);
      const versions = new Map<string, string | undefined>();
      for (const id of [...TENANTS, NO_TENANT]) versions.set(id, await versionOf(id));
      const asked = [...IDS, 'none', 'a\nb', 'abc\nabc', '\n', ''];
      for (let round = 0; round < 60; round += 1) {
        const tenants = [NO_TENANT, ...TENANTS].slice(0, 1 + random.below(8));
        const keys: TokenKey[] = Array.from({ length: 1 + random.below(128) }, () => ({
          tenant_id: random.pick(tenants),
          id: random.pick(asked),
        }));
        const reads = await readRows(test.pool, keys, reading as typeof SEALED_TOKENS);
        expect(reads).to.have.lengthOf(keys.length);
        for (const [index, { tenant_id, id }] of keys.entries()) {
          const read = reads[index];
          const isThere = IDS.includes(id) && id !== 'NULL' && tenant_id !== NO_TENANT;
          expect(read?.token?.sealed.toString()).to.equal(isThere ? tenant_id + id : undefined);
          expect(read?.token?.id).to.equal(isThere ? id : undefined);
          expect(read?.config_version).to.equal(versions.get(tenant_id) ?? null);
          expect(read?.now_ms).to.be.closeTo(Date.now(), 60_000);
        }
      }
    });
  }

  it('are read alone as they are together', async () => {
    const { whole, sealed } = createTokenReaders(test.pool);
    for (const id of IDS) {
      for (const tenant_id of [TENANTS[0] ?? '', NO_TENANT]) {
        const alone = [
          await whole.submit({ tenant_id, id }),
          await sealed.submit({ tenant_id, id }),
        ];
        const [together] = await whole.submitAll([
          { tenant_id, id },
          { tenant_id, id: 'abc' },
        ]);
        for (const read of alone) {
          expect(read.token?.sealed).to.deep.equal(together?.token?.sealed);
          expect(read.config_version).to.equal(together?.config_version);
        }
      }
    }
  });
});
