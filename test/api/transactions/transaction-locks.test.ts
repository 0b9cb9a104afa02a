/** Who may change what while a transaction is open: everybody else gets 409, until it has ended. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { expectProblem, type TokenBody, type TokenClient } from '../tokens/token-client.ts';
import { HOUR_S, startVault, type Vault } from '../tokens/vault.ts';
import { begin, type TransactionClient, transactionClient } from './transaction-client.ts';

describe('tokens that a transaction holds', () => {
  let vault: Vault;
  let tokens: TokenClient;
  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const open = (): Promise<TransactionClient> => begin(vault.url, vault.key);
  const newToken = (over = {}): Promise<TokenBody> =>
    tokens.created({ type: 'token', data: 'x', ...over });
  const newId = (): string => `chosen-${randomUUID()}`;

  const holds: [string, (transaction: TransactionClient, id: string) => Promise<unknown>][] = [
    ['updated', (transaction, id) => transaction.patch(id, { data: 'theirs' })],
    ['deleted', (transaction, id) => transaction.remove(id)],
    [
      'deleted and created again',
      async (transaction, id) => {
        await transaction.remove(id);
        await transaction.created({ type: 'token', data: 'again', id });
      },
    ],
  ];
  for (const [how, change] of holds) {
    it(`because it has ${how} them cannot be changed by others, in transactions or not`, async () => {
      const { id } = await newToken({ id: newId() });
      const [transaction, other] = [await open(), await open()];
      await change(transaction, id);
      for (const writer of [tokens, other]) {
        expectProblem(await writer.patch(id, { data: 'mine' }), 409);
        expectProblem(await writer.remove(id), 409);
        expectProblem(await writer.create({ type: 'token', data: 'mine', id }), 409);
      }
      expect((await tokens.read(id)).body.data).to.equal('x');
      // What was refused has left nothing in the other one.
      expect((await other.commit()).status).to.equal(200);
      await transaction.rollback();
      expect((await tokens.patch(id, { data: 'mine' })).status).to.equal(200);
      expect((await tokens.remove(id)).status).to.equal(204);
    });
    it(`because it has ${how} them are free when its hour is over, without a sweep`, async () => {
      const expires_at = '2099-01-01T00:00:00Z';
      const { id } = await newToken({ id: newId(), expires_at });
      const transaction = await open();
      await change(transaction, id);
      const later = await vault.later(HOUR_S + 1);
      expect((await later.patch(id, { data: 'mine' })).status).to.equal(200);
      // From then on it has ended by every clock, whatever that says.
      expectProblem(await transaction.commit(), 409);
      expectProblem(await transaction.rollback(), 409);
      expect((await tokens.read(id)).body.data).to.equal('mine');
      expect((await tokens.remove(id)).status).to.equal(204);
    });
  }

  it('are told from those the caller may not change: 403 comes first', async () => {
    const { id } = await newToken();
    const transaction = await open();
    await transaction.patch(id, { data: 'theirs' });
    const reader = await vault.clientWith({ permissions: ['token:read'] });
    expectProblem(await reader.patch(id, { data: 'mine' }), 403);
    expectProblem(await reader.remove(id), 403);
    await transaction.rollback();
  });

  it('pass to the next transaction when the one before has ended', async () => {
    const { id } = await newToken();
    for (const end of ['commit', 'rollback', 'commit'] as const) {
      const transaction = await open();
      expect((await transaction.patch(id, { data: end })).status).to.equal(200);
      expect((await transaction[end]()).status).to.equal(200);
    }
    const expired = await open();
    await expired.patch(id, { data: 'expired' });
    const url = await vault.ahead(HOUR_S + 1);
    const next = await begin(url, vault.key);
    expect((await next.patch(id, { data: 'next' })).status).to.equal(200);
    expectProblem(await expired.commit(), 409);
    expect((await next.commit()).status).to.equal(200);
    expect((await tokens.read(id)).body.data).to.equal('next');
  });

  describe('by an id that it will create', () => {
    it('are taken for others, and free again when it is rolled back', async () => {
      const id = newId();
      const [transaction, other] = [await open(), await open()];
      await transaction.created({ type: 'token', data: 'theirs', id });
      const json = { type: 'token', data: 'mine', id };
      expectProblem(await tokens.create(json), 409);
      expectProblem(await tokens.create({ ...json, deduplicate_token: true }), 409);
      expectProblem(await other.create(json), 409);
      expectProblem(await tokens.send('POST /tokenize', { json: { json } }), 409);
      expectProblem(await other.send('POST /tokenize', { json: { json } }), 409);
      expectProblem(await tokens.read(id), 404);
      expectProblem(await tokens.patch(id, { data: 'mine' }), 404);
      expectProblem(await other.remove(id), 404);
      await transaction.rollback();
      await other.created(json);
      await other.commit();
      expect((await tokens.read(id)).body.data).to.equal('mine');
    });
    it('are free when its hour is over, without a sweep', async () => {
      const [one, two] = [newId(), newId()];
      const transaction = await open();
      await transaction.created({ type: 'token', data: 'theirs', id: one });
      await transaction.created({ type: 'token', data: 'theirs', id: two });
      const later = await vault.later(HOUR_S + 1);
      await later.created({ type: 'token', data: 'mine', id: one });
      const next = await begin(await vault.ahead(HOUR_S + 1), vault.key);
      await next.created({ type: 'token', data: 'mine', id: two });
      expectProblem(await transaction.commit(), 409);
      expect((await next.commit()).status).to.equal(200);
      expect((await tokens.read(one)).body.data).to.equal('mine');
      expect((await tokens.read(two)).body.data).to.equal('mine');
    });
    it('are passed over by aliases, in another transaction as well', async () => {
      const [transaction, other] = [await open(), await open()];
      const json = { type: 'token', data: `seed ${randomUUID()}`, id: '{{ data | slice: 5, 20 }}' };
      const first = await transaction.created(json);
      for (const place of [tokens, other, transaction]) {
        const { id } = await place.created(json);
        expect(id)
          .to.match(/^[0-9a-f-]{36}$/)
          .and.not.equal(first.id);
      }
      await Promise.all([transaction.commit(), other.commit()]);
    });
    it('belong to one of many that want them at once', async () => {
      const id = newId();
      const all = await Promise.all(Array.from({ length: 8 }, open));
      const json = { type: 'token', data: 'x', id };
      const answers = await Promise.all(all.map((transaction) => transaction.create(json)));
      const statuses = answers.map(({ status }) => status);
      expect(statuses.toSorted()).to.deep.equal([201, ...Array(7).fill(409)]);
      const commits = await Promise.all(all.map((transaction) => transaction.commit()));
      expect(commits.map(({ status }) => status)).to.deep.equal(Array(8).fill(200));
      expect((await tokens.read(id)).status).to.equal(200);
    });
  });

  describe('that cannot be committed', () => {
    const whole = async (transaction: TransactionClient): Promise<string> =>
      (await transaction.created({ type: 'token', data: 'whole' })).id;

    it('since an id was taken: 409, nothing is changed, and it is still open', async () => {
      const { id: live } = await newToken();
      const transaction = await open();
      const made = await whole(transaction);
      await transaction.patch(live, { data: 'changed' });
      // Its id is held; only SQL can take it before the commit.
      await vault.control.pool.query(
        `INSERT INTO tokens (tenant_id, id, type, container, sealed, created_by)
         SELECT tenant_id, '${made}', type, container, sealed, created_by FROM tokens
         WHERE id = '${live}'`,
      );
      expectProblem(await transaction.commit(), 409);
      expect((await tokens.read(live)).body.data).to.equal('x');
      expectProblem(await tokens.patch(live, { data: 'mine' }), 409);
      await vault.control.pool.query(`DELETE FROM tokens WHERE id = '${made}'`);
      expect((await transaction.commit()).status).to.equal(200);
      expect((await tokens.read(live)).body.data).to.equal('changed');
      expect((await tokens.read(made)).body.data).to.equal('whole');
    });
    it('since a token has expired that was updated to last: 409, and nothing is changed', async () => {
      const expires_at = new Date(Date.now() + 600_000).toISOString();
      const { id } = await newToken({ expires_at });
      const transaction = await open();
      const made = await whole(transaction);
      const lasting = await transaction.patch(id, { expires_at: null });
      expect(lasting.status).to.equal(200);
      const later = transactionClient(await vault.ahead(900), vault.key, transaction.id);
      expectProblem(await later.commit(), 409);
      expectProblem(await tokens.read(made), 404);
      // Before that moment it lasts.
      expect((await transaction.commit()).status).to.equal(200);
      expect((await (await vault.later(900)).read(id)).status).to.equal(200);
    });
  });

  it('that have expired meanwhile are gone after a commit as before it', async () => {
    const soon = new Date(Date.now() + 600_000).toISOString();
    const [updated, removed] = [await newToken({ expires_at: soon }), await newToken()];
    const freed = await newToken({ id: newId(), expires_at: soon });
    const transaction = await open();
    await transaction.patch(updated.id, { data: 'changed' });
    await transaction.patch(removed.id, { expires_at: soon });
    const made = await transaction.created({ type: 'token', data: 'x', expires_at: soon });
    const url = await vault.ahead(900);
    const later = transactionClient(url, vault.key, transaction.id);
    await later.created({ type: 'token', data: 'new', id: freed.id });
    expect((await later.commit()).status).to.equal(200);
    const then = await vault.later(900);
    for (const { id } of [updated, removed, made]) expectProblem(await then.read(id), 404);
    expect((await then.read(freed.id)).body.data).to.equal('new');
    expect((await tokens.read(removed.id)).status, 'by the clock of before').to.equal(200);
  });
});
