/**
 * Records of idempotency keys that name their token, while that is changed by others at the same moment:
 * whoever is first, the key has one effect and every answer to it is the same.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { expectReplay, keyedCreate, keyedPatch, newKey } from '../api/idempotency/keyed.ts';
import { startVault, type Vault } from '../api/tokens/vault.ts';
import { begin } from '../api/transactions/transaction-client.ts';
import { inParallel } from '../support/in-parallel.ts';

const ROUNDS = 150;
const LARGE = 'large '.repeat(100_000);

describe('a token that is named by the record of its key', () => {
  let vault: Vault;
  before(async () => {
    vault = await startVault();
  });
  after(() => vault?.stop());

  const count = async (what: string): Promise<number> => {
    const { rows } = await vault.control.pool.query(`SELECT count(*)::int4 AS count FROM ${what}`);
    return rows[0].count;
  };
  const total = async () => (await vault.tokens.list('?size=0')).body.pagination.total_items;

  type Change = (id: string) => Promise<{ status: number }>;
  const patchOnce: Change = (id) => keyedPatch(vault.tokens, newKey(), id, { data: 'changed' });
  const remove: Change = (id) => vault.tokens.remove(id);
  const removeWithin: Change = async (id) => {
    const transaction = await begin(vault.url, vault.key);
    const removed = await transaction.remove(id);
    return removed.status === 204 ? transaction.commit() : removed;
  };
  const replaceWithin: Change = async (id) => {
    const transaction = await begin(vault.url, vault.key);
    const removed = await transaction.remove(id);
    if (removed.status !== 204) return removed;
    expect((await transaction.create({ type: 'token', data: 'new', id })).status).to.equal(201);
    return transaction.commit();
  };

  /** [what happens at once, what is left of the token]. */
  const RACES: readonly [string, readonly Change[], 'kept' | 'gone'][] = [
    ['deleted', [remove], 'gone'],
    ['deleted twice', [remove, remove], 'gone'],
    ['patched', [patchOnce, patchOnce], 'kept'],
    ['patched and deleted', [patchOnce, remove], 'gone'],
    ['deleted by a transaction', [removeWithin], 'gone'],
    ['replaced by a transaction', [replaceWithin], 'kept'],
  ];
  for (const [how, changes, left] of RACES) {
    it(`has one effect when it is ${how} while the key comes again`, async function () {
      this.timeout(60_000);
      const rounds = Array.from({ length: ROUNDS }, () => ({ key: newKey(), id: randomUUID() }));
      const before = await total();
      await inParallel(rounds, async ({ key, id }, index) => {
        // An id of its own choice could be made anew once it is free.
        const json = { type: 'token', data: 'x', ...(index % 2 === 0 ? { id } : {}) };
        const first = await keyedCreate(vault.tokens, key, json);
        expect(first.status, first.text).to.equal(201);
        const create = () => keyedCreate(vault.tokens, key, json);
        const changing = Promise.all(changes.map((change) => change(first.body.id)));
        const twins = await Promise.all([create(), create(), create()]);
        const statuses = (await changing).map(({ status }) => status);
        for (const status of statuses) expect(status).to.be.oneOf([200, 204, 404]);
        // The lock of the key tells twins of one another.
        for (const twin of [...twins.filter(({ status }) => status !== 409), await create()]) {
          expectReplay(twin, first);
        }
      });
      expect(await total()).to.equal(before + (left === 'kept' ? ROUNDS : 0));
      const named = `SELECT 1 FROM tokens t WHERE t.id = i.token_id AND t.record_scope = i.scope`;
      const astray = `idempotency_records i WHERE token_id IS NOT NULL AND NOT EXISTS (${named})`;
      expect(await count(astray)).to.equal(0);
    });
  }

  it('is replayed, with hundreds of others, after one transaction has changed them all', async function () {
    this.timeout(60_000);
    // More than are read at once: of small ones by their number, of large ones by their bytes.
    const datas = Array.from({ length: 300 }, (_, n) => (n % 60 === 0 ? LARGE : `small ${n}`));
    const made = datas.map((data) => ({
      key: newKey(),
      json: { type: 'token', data },
    }));
    const answers = new Map<string, Awaited<ReturnType<typeof keyedCreate>>>();
    await inParallel(made, async ({ key, json }) => {
      const answer = await keyedCreate(vault.tokens, key, json);
      expect(answer.status, answer.text).to.equal(201);
      answers.set(key, answer);
    });
    const transaction = await begin(vault.url, vault.key);
    await inParallel(made, async ({ key }, index) => {
      const id = answers.get(key)?.body.id ?? '';
      const { status, text } = await (index % 3 === 0
        ? transaction.patch(id, { data: 'changed' })
        : transaction.remove(id));
      expect(status, text).to.be.within(200, 204);
    });
    expect((await transaction.commit()).status).to.equal(200);
    const scopes = 'SELECT record_scope FROM tokens WHERE record_scope IS NOT NULL';
    expect(await count(`idempotency_records WHERE scope IN (${scopes})`)).to.equal(0);
    await inParallel(made, async ({ key, json }) => {
      const first = answers.get(key);
      if (first !== undefined) expectReplay(await keyedCreate(vault.tokens, key, json), first);
    });
  });
});
