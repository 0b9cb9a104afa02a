/** Idempotency keys and the audit trail of transactions. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { call, type JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenBody, type TokenClient } from '../tokens/token-client.ts';
import { startVault, type Vault } from '../tokens/vault.ts';
import { begin, type TransactionClient, transactionClient } from './transaction-client.ts';

describe('the records of a transaction', () => {
  let vault: Vault;
  let tokens: TokenClient;
  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const open = (): Promise<TransactionClient> => begin(vault.url, vault.key);
  const keyed = () => ({ 'BT-IDEMPOTENCY-KEY': randomUUID() });

  describe('idempotency keys', () => {
    it('open one transaction', async () => {
      const headers = keyed();
      const [one, two] = [
        await tokens.send<{ id: string }>('POST /transactions', { headers }),
        await tokens.send<{ id: string }>('POST /transactions', { headers }),
      ];
      expect(one.status).to.equal(201);
      expect([two.status, two.text]).to.deep.equal([201, one.text]);
    });
    for (const [line, body] of [
      ['POST /tokens', { type: 'token', data: 'x' }],
      ['POST /tokens', { type: 'token', data: randomUUID(), deduplicate_token: true }],
      ['POST /tokenize', { a: 'x', b: { type: 'token', data: 'y' } }],
    ] as [string, JsonObject][]) {
      it(`stage ${line} of ${Object.keys(body)} once`, async () => {
        const transaction = await open();
        const request = { json: body, headers: keyed() };
        const answers = await Promise.all(
          Array.from({ length: 6 }, () => transaction.send(line, request)),
        );
        const good = answers.filter(({ status }) => status < 300);
        expect(good).not.to.have.lengthOf(0);
        expect(new Set(good.map(({ text }) => text)).size).to.equal(1);
        for (const { status } of answers) expect(status).to.be.oneOf([200, 201, 409]);
        const again = await transaction.send(line, request);
        expect(again.text).to.equal(good[0]?.text);
        const staged = await vault.control.pool.query(
          'SELECT 1 FROM staged_tokens WHERE transaction_id = $1',
          [transaction.id],
        );
        expect(staged.rowCount).to.equal(line === 'POST /tokens' ? 1 : 2);
        await transaction.commit();
      });
    }
    it('patch once in one transaction, and anew in the next', async () => {
      const { id } = await tokens.created({ type: 'token', data: { n: 0 } });
      const headers = { ...keyed(), 'content-type': 'application/merge-patch+json' };
      const patch = { headers, body: '{"data":{"n":1}}' };
      const [first, second] = [await open(), await open()];
      const one = await first.send(`PATCH /tokens/${id}`, patch);
      expect(one.status).to.equal(200);
      expect((await first.send(`PATCH /tokens/${id}`, patch)).text).to.equal(one.text);
      await first.rollback();
      // The answer of a transaction that was rolled back would promise what nobody has written.
      expect((await second.send(`PATCH /tokens/${id}`, patch)).status).to.equal(200);
      await second.commit();
      expect((await tokens.read(id)).body.data).to.deep.equal({ n: 1 });
    });
    for (const how of ['commit', 'rollback']) {
      it(`${how} once: the answer again with the key, 409 without`, async () => {
        const transaction = await open();
        const made = await transaction.created({ type: 'token', data: 'x' });
        const line = `POST /transactions/${transaction.id}/${how}`;
        const headers = keyed();
        for (let n = 0; n < 2; n += 1) {
          const answer = await tokens.send(line, { headers });
          expect([answer.status, answer.text]).to.deep.equal([200, '']);
        }
        expectProblem(await tokens.send(line), 409);
        expectProblem(await tokens.send(line, { headers: keyed() }), 409);
        expect((await tokens.read(made.id)).status).to.equal(how === 'commit' ? 200 : 404);
      });
    }
    it('are not used up by a commit that was refused', async () => {
      const { id } = await tokens.created({ type: 'token', data: 'x' });
      const transaction = await open();
      const { id: made } = await transaction.created({ type: 'token', data: 'x' });
      const take = `UPDATE tokens SET id = $2 WHERE id = $1`;
      await vault.control.pool.query(take, [id, made]);
      const headers = keyed();
      const line = `POST /transactions/${transaction.id}/commit`;
      expectProblem(await tokens.send(line, { headers }), 409);
      await vault.control.pool.query(take, [made, id]);
      expect((await tokens.send(line, { headers })).status).to.equal(200);
    });
  });

  describe('the audit trail', () => {
    interface Row {
      entity_id: string;
      operation: string;
      container: string;
      actor_id: string;
      denied: boolean;
      trace_id: string;
    }
    const trail = async (...ids: string[]): Promise<string[]> => {
      const { rows } = await vault.control.pool.query<Row>(
        `SELECT * FROM audit_log WHERE entity_id = ANY ($1) AND operation <> 'read'`,
        [ids],
      );
      return rows
        .map(({ entity_id, operation, container, denied, trace_id }) =>
          [ids.indexOf(entity_id), operation, container, denied, trace_id].join(' '),
        )
        .toSorted();
    };
    const live = (n: number): Promise<TokenBody> =>
      tokens.created({ type: 'token', data: 'x', id: `audited-${n}-${randomUUID()}` });

    it('tells what was committed when it is, by the request that did', async () => {
      const [patched, removed, replaced] = [await live(1), await live(2), await live(3)];
      const before = await trail(patched.id, removed.id, replaced.id);
      const transaction = await open();
      const made = await transaction.created({ type: 'token', data: 'x' });
      const undone = await transaction.created({ type: 'token', data: 'x' });
      await transaction.remove(undone.id);
      await transaction.patch(patched.id, { containers: ['/general/low/'] });
      await transaction.remove(removed.id);
      await transaction.remove(replaced.id);
      await transaction.created({ type: 'token', data: 'x', id: replaced.id });
      const ids = [patched.id, removed.id, replaced.id, made.id, undone.id];
      expect(await trail(...ids)).to.deep.equal(before);
      const headers = { 'BT-TRACE-ID': 'the-commit' };
      const line = `POST /transactions/${transaction.id}/commit`;
      expect((await tokens.send(line, { headers })).status).to.equal(200);
      const told = (await trail(...ids)).filter((row) => row.endsWith('the-commit'));
      expect(told).to.deep.equal([
        '0 update /general/low/ false the-commit',
        '1 delete /general/high/ false the-commit',
        '2 create /general/high/ false the-commit',
        '2 delete /general/high/ false the-commit',
        '3 create /general/high/ false the-commit',
      ]);
    });
    it('tells nothing of what was rolled back, or could not be committed', async () => {
      const [one, two] = [await open(), await open()];
      const ids = [
        (await one.created({ type: 'token', data: 'x' })).id,
        (await two.created({ type: 'token', data: 'x' })).id,
      ];
      await one.rollback();
      const { id } = await tokens.created({ type: 'token', data: 'x' });
      const take = `UPDATE tokens SET id = $2 WHERE id = $1`;
      await vault.control.pool.query(take, [id, ids[1]]);
      expectProblem(await two.commit(), 409);
      expect(await trail(...ids)).to.deep.equal([]);
    });
    it('tells of a duplicate that a transaction was shown, at once', async () => {
      const data = randomUUID();
      const { id } = await tokens.created({ type: 'token', data });
      const transaction = await open();
      const json = { type: 'token', data, deduplicate_token: true };
      expect((await transaction.created(json)).id).to.equal(id);
      const { rows } = await vault.control.pool.query<Row>(
        `SELECT * FROM audit_log WHERE entity_id = $1 AND operation = 'read'`,
        [id],
      );
      expect(rows).to.have.lengthOf(1);
    });
  });

  it('of another transaction’s id say nothing about it', async () => {
    const mine = await open();
    const theirs = await vault.keyWith({ permissions: ['token:create'] });
    const foreign = transactionClient(vault.url, theirs, mine.id);
    const answers = [await foreign.commit(), await foreign.rollback()];
    const unknown = await call(vault.url, `POST /transactions/${randomUUID()}/commit`, {
      key: theirs,
    });
    for (const { text } of answers) expect(text).to.equal(unknown.text);
    expect((await mine.commit()).status).to.equal(200);
  });
});
