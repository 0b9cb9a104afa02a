/** Tokens of a megabyte: they are read one by one, and small ones do not wait for them. */
import { expect } from 'chai';
import type { QueryArrayConfig } from 'pg';
import type { Queryable } from '../../../shared/postgres/pool.ts';
import { createTokenReaders } from '../../../shared/tokens/batch-reader.ts';
import { startVault, type Vault } from './vault.ts';

const LARGE_CHARACTERS = 1_000_000;

describe('large tokens', () => {
  let vault: Vault;
  before(async () => {
    vault = await startVault();
  });
  after(() => vault.stop());

  const store = async (data: string): Promise<string> =>
    (await vault.tokens.created({ type: 'token', data })).id;

  /** The pool, and the bytes of values that each of its statements has brought. */
  function measured(): { db: Queryable; bytes: number[] } {
    const { pool } = vault.control;
    const bytes: number[] = [];
    const query = async (statement: QueryArrayConfig) => {
      const result = await pool.query<unknown[]>(statement);
      const buffers = result.rows.flat().filter((value) => Buffer.isBuffer(value));
      bytes.push(buffers.reduce((sum, { length }) => sum + length, 0));
      return result;
    };
    return { db: { query: query as Queryable['query'] }, bytes };
  }

  for (const kind of ['whole', 'sealed'] as const) {
    it(`never share a statement, and are read as they are: ${kind}`, async () => {
      const large = await store('x'.repeat(LARGE_CHARACTERS));
      const small = await store('small');
      const ids = Array.from({ length: 30 }, (_, n) => [large, small, 'none'][n % 3] ?? '');
      const { db, bytes } = measured();
      const reader = createTokenReaders(db)[kind];
      const tenant_id = vault.control.tenant.id;
      const order: number[] = [];
      const reads = await Promise.all(
        ids.map(async (id, n) => {
          const read = await reader.submit({ tenant_id, id });
          order.push(n % 3);
          return read;
        }),
      );
      for (const [n, { token, config_version, now_ms }] of reads.entries()) {
        expect(token?.id).to.equal([large, small, undefined][n % 3]);
        if (n % 3 === 0) expect(token?.sealed.length).to.be.greaterThan(LARGE_CHARACTERS);
        expect(config_version).to.equal(reads[0]?.config_version).and.not.equal(null);
        expect(now_ms).to.be.greaterThan(0);
      }
      expect(Math.max(...bytes)).to.be.lessThan(1.1 * LARGE_CHARACTERS);
      // All that are small come with the first statement.
      expect(order.slice(0, 20)).not.to.include(0);
    });
  }

  it('are answered whole, many at the same time', async () => {
    const data = 'y'.repeat(LARGE_CHARACTERS);
    const id = await store(data);
    const answers = await Promise.all(Array.from({ length: 8 }, () => vault.tokens.read(id)));
    for (const { status, body } of answers) {
      expect(status).to.equal(200);
      expect(body.data === data).to.equal(true);
    }
    const gone = await Promise.all([vault.tokens.remove(id), vault.tokens.read('none')]);
    expect(gone.map(({ status }) => status)).to.deep.equal([204, 404]);
    const after = await Promise.all([1, 2, 3].map(() => vault.tokens.read(id)));
    expect(after.map(({ status }) => status)).to.deep.equal([404, 404, 404]);
  });
});
