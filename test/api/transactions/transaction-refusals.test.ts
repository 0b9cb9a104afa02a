import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { expectProblem, type TokenClient } from '../tokens/token-client.ts';
import { HOUR_S, REVEAL_ALL, startVault, type Vault } from '../tokens/vault.ts';
import { begin, type TransactionClient } from './transaction-client.ts';

describe('transactions that cannot be used', () => {
  let vault: Vault;
  let tokens: TokenClient;
  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const open = (key = vault.key): Promise<TransactionClient> => begin(vault.url, key);
  const newToken = () => tokens.created({ type: 'token', data: 'x' });

  describe('are refused', () => {
    const used = async (id: string, client = tokens): Promise<void> => {
      const headers = { 'BT-TRANSACTION-ID': id };
      const token = await newToken();
      const json = { type: 'token', data: 'x' };
      const patch = { 'content-type': 'application/merge-patch+json', ...headers };
      const answers = [
        await client.send('POST /tokens', { json, headers }),
        await client.send('POST /tokens', { json: { ...json, deduplicate_token: true }, headers }),
        await client.send('POST /tokenize', { json, headers }),
        await client.send(`PATCH /tokens/${token.id}`, { body: '{}', headers: patch }),
        await client.send(`DELETE /tokens/${token.id}`, { headers }),
        await client.send(`POST /transactions/${id}/commit`),
        await client.send(`POST /transactions/${id}/rollback`),
      ];
      for (const answer of answers) {
        expectProblem(answer, statusOf(id));
      }
    };
    const expected = new Map<string, number>();
    const statusOf = (id: string): number => expected.get(id) ?? 0;

    it('with 404 when nobody opened them, another application or another tenant did', async () => {
      const unknown = randomUUID();
      const another = (await open(await vault.keyWith({ rules: REVEAL_ALL }))).id;
      const tenant = await vault.control.addTenant('Globex');
      const foreign = (await open(await vault.keyWith({ rules: REVEAL_ALL }, tenant))).id;
      for (const id of [unknown, another, foreign]) {
        expected.set(id, 404);
        await used(id);
      }
    });
    it('with 409 when they were committed or rolled back', async () => {
      for (const end of ['commit', 'rollback'] as const) {
        const transaction = await open();
        expect((await transaction[end]()).status).to.equal(200);
        expected.set(transaction.id, 409);
        await used(transaction.id);
      }
    });
    it('with 409 when their hour is over, by the clock alone', async () => {
      const transaction = await open();
      const made = await transaction.created({ type: 'token', data: 'x' });
      const [before, after] = [await vault.later(HOUR_S - 30), await vault.later(HOUR_S + 1)];
      const json = { type: 'token', data: 'x' };
      const headers = { 'BT-TRANSACTION-ID': transaction.id };
      expect((await before.send('POST /tokens', { json, headers })).status).to.equal(201);
      expected.set(transaction.id, 409);
      await used(transaction.id, after);
      expectProblem(await after.read(made.id), 404);
    });
    it('with 400 for what is no uuid', async () => {
      for (const id of ['x', '%20', `{${randomUUID()}}`, `${randomUUID()}0`]) {
        expected.set(id, 400);
        await used(id);
      }
      const headers = { 'BT-TRANSACTION-ID': '' };
      const json = { type: 'token', data: 'x' };
      expectProblem(await tokens.send('POST /tokens', { json, headers }), 400, 'BT-TRANSACTION-ID');
    });
    it('never for what is no write of tokens: the header is ignored', async () => {
      const { id } = await newToken();
      const headers = { 'BT-TRANSACTION-ID': 'nonsense' };
      expect((await tokens.send(`GET /tokens/${id}`, { headers })).status).to.equal(200);
      expect((await tokens.send('GET /tokens', { headers })).status).to.equal(200);
      const json = { value: `{{ ${id} }}` };
      expect((await tokens.send('POST /detokenize', { json, headers })).status).to.equal(200);
      expect((await tokens.send('POST /transactions', { headers })).status).to.equal(201);
    });
    it('with the refusals of the same request outside, which leave them open', async () => {
      const transaction = await open();
      expectProblem(await transaction.create({ type: 'nonsense', data: 'x' }), 400, 'type');
      expectProblem(await transaction.patch(randomUUID(), { data: 'x' }), 404);
      const past = { type: 'token', data: 'x', expires_at: '2020-01-01T00:00:00Z' };
      expectProblem(await transaction.create(past), 400, 'expires_at');
      const { id } = await newToken();
      expectProblem(await transaction.patch(id, { expires_at: '2020-01-01T00:00:00Z' }), 400);
      const made = await transaction.created({ type: 'token', data: 'y' });
      expect((await transaction.commit()).status).to.equal(200);
      expect((await tokens.read(made.id)).status).to.equal(200);
    });
  });
});
