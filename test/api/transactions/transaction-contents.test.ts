/** What transactions do with duplicates and cvc values, their limits, and what is left of them. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createPool } from '../../../shared/postgres/pool.ts';
import { sweepTransactions } from '../../../shared/transactions/sweep-transactions.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { inParallel } from '../../support/in-parallel.ts';
import { expectProblem, type TokenClient } from '../tokens/token-client.ts';
import { HOUR_S, REVEAL_ALL, startVault, type Vault } from '../tokens/vault.ts';
import { begin, type TransactionClient, transactionClient } from './transaction-client.ts';

const NUMBER = '4242424242424242';

describe('in transactions', () => {
  let vault: Vault;
  let tokens: TokenClient;
  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const open = (): Promise<TransactionClient> => begin(vault.url, vault.key);
  const query = <R extends object>(text: string, values: unknown[] = []) =>
    vault.control.pool.query<R>(text, values).then(({ rows }) => rows);

  describe('duplicates', () => {
    const request = (data: unknown, over: JsonObject = {}): JsonObject => ({
      ...{ type: 'token', data, deduplicate_token: true },
      ...over,
    });
    const contents = (): string => `contents ${randomUUID()}`;

    it('are found among committed tokens, and those of the same transaction', async () => {
      const [live, own] = [contents(), contents()];
      const first = await tokens.created({ type: 'token', data: live });
      const transaction = await open();
      const again = await transaction.created(request(live));
      expect(again)
        .to.include({ id: first.id })
        .and.deep.include({ _extras: { deduplicated: true } });
      const staged = await transaction.created({ type: 'token', data: own });
      const other = await transaction.created(request(own));
      expect(other.id).to.equal(staged.id);
      const json = [request(own), request(live), request(own)];
      const all = await transaction.send<{ id: string }[]>('POST /tokenize', { json });
      expect(all.body.map(({ id }) => id)).to.deep.equal([staged.id, first.id, staged.id]);
      await transaction.commit();
      expect((await tokens.created(request(own))).id).to.equal(staged.id);
    });
    it('are not found among what other transactions have staged: both may commit', async () => {
      const data = contents();
      const [one, two] = [await open(), await open()];
      const ids = [(await one.created(request(data))).id, (await two.created(request(data))).id];
      const outside = await tokens.created(request(data));
      expect(new Set([...ids, outside.id]).size).to.equal(3);
      expect((await one.commit()).status).to.equal(200);
      expect((await two.commit()).status).to.equal(200);
      for (const id of ids) expect((await tokens.read(id)).body.data).to.equal(data);
    });
    it('are not those that the transaction has deleted or changed', async () => {
      const [gone, changed] = [contents(), contents()];
      const one = await tokens.created({ type: 'token', data: gone });
      const two = await tokens.created({ type: 'token', data: changed });
      const transaction = await open();
      await transaction.remove(one.id);
      await transaction.patch(two.id, { data: contents() });
      const made = [
        await transaction.created(request(gone)),
        await transaction.created(request(changed)),
      ];
      for (const { _extras } of made) expect(_extras).to.deep.equal({ deduplicated: false });
      expect((await transaction.commit()).status).to.equal(200);
    });
    it('make no change of a patch', async () => {
      const [one, two] = [contents(), contents()];
      const first = await tokens.created({ type: 'token', data: one });
      const second = await tokens.created({ type: 'token', data: two });
      const transaction = await open();
      const patch = { data: one, deduplicate_token: true };
      const answer = await transaction.patch(second.id, patch);
      expect(answer.body).to.include({ id: first.id });
      await transaction.commit();
      expect((await tokens.read(second.id)).body.data).to.equal(two);
    });
  });

  describe('a cvc', () => {
    const card = (cvc: string): JsonObject => ({ type: 'card', data: { number: NUMBER, cvc } });
    const cvcOf = async (id: string, client = tokens): Promise<unknown> =>
      ((await client.read(id)).body.data as JsonObject).cvc;

    it('lives for an hour from the write, not from the commit', async () => {
      const transaction = await open();
      const { id } = await transaction.created(card('123'));
      const late = transactionClient(await vault.ahead(HOUR_S - 60), vault.key, transaction.id);
      expect((await late.commit()).status).to.equal(200);
      expect(await cvcOf(id, await vault.later(HOUR_S - 60))).to.equal('123');
      expect(await cvcOf(id, await vault.later(HOUR_S + 60))).to.equal(undefined);
    });
    it('is kept, replaced or removed by an update when it is committed', async () => {
      const ids: string[] = [];
      for (let n = 0; n < 3; n += 1) ids.push((await tokens.created(card('123'))).id);
      const [kept = '', replaced = '', removed = ''] = ids;
      const transaction = await open();
      await transaction.patch(kept, { data: { expiration_month: 1 } });
      await transaction.patch(replaced, { data: { cvc: '456' } });
      await transaction.patch(replaced, { data: { expiration_month: 1 } });
      await transaction.patch(removed, { data: { cvc: '789' } });
      await transaction.patch(removed, { data: { cvc: null } });
      for (const id of ids) expect(await cvcOf(id)).to.equal('123');
      await transaction.commit();
      expect(await cvcOf(kept)).to.equal('123');
      expect(await cvcOf(replaced)).to.equal('456');
      expect(await cvcOf(removed)).to.equal(undefined);
    });
    it('is nowhere in clear while it is staged, and neither is the number', async () => {
      const transaction = await open();
      const { id } = await transaction.created({
        ...card('847'),
        search_indexes: ['{{ data.number }}'],
      });
      await transaction.patch(id, { data: { expiration_month: 7 } });
      const rows = [
        ...(await query('SELECT * FROM staged_tokens WHERE id = $1', [id])),
        ...(await query('SELECT * FROM staged_cvcs WHERE token_id = $1', [id])),
      ];
      expect(rows).to.have.lengthOf(2);
      for (const row of rows) {
        for (const value of Object.values(row)) {
          const text = Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value);
          expect(text ?? '').not.to.match(/4242424242424242|"847"|^847$/);
        }
      }
      await transaction.rollback();
    });
  });

  describe('what database access alone changes', () => {
    async function moved(assignment: string, values: unknown[] = []): Promise<string> {
      const transaction = await open();
      const { id } = await transaction.created({ type: 'token', data: 'secret' });
      const text = `UPDATE staged_tokens SET ${assignment} WHERE id = $1 RETURNING id`;
      const [row] = await query<{ id: string }>(text, [id, ...values]);
      expect((await transaction.commit()).status).to.equal(200);
      return row?.id ?? '';
    }
    for (const [what, assignment] of [
      ['id', `id = 'renamed-' || id`],
      ['container', `container = '/general/low/'`],
      ['type', `type = 'card'`],
      ['expiry', `expires_at = now() + interval '1 year'`],
    ] as const) {
      it(`of a staged token, its ${what}, does not open after the commit`, async () => {
        const answer = await tokens.read(await moved(assignment));
        expect(answer.status).to.equal(500);
        expect(answer.text).not.to.contain('secret');
      });
    }
    it('to the transaction of another tenant does not open there', async () => {
      const tenant = await vault.control.addTenant('Globex');
      const key = await vault.keyWith({ rules: REVEAL_ALL }, tenant);
      const [mine, theirs] = [await open(), await begin(vault.url, key)];
      const { id } = await mine.created({ type: 'token', data: 'secret' });
      await query('UPDATE staged_tokens SET tenant_id = $2, transaction_id = $3 WHERE id = $1', [
        ...[id, tenant.id, theirs.id],
      ]);
      expect((await theirs.commit()).status).to.equal(200);
      const answer = await call(vault.url, `GET /tokens/${id}`, { key });
      expect(answer.status).to.equal(500);
      expect(answer.text).not.to.contain('secret');
    });
  });

  describe('too much', () => {
    it('is more than a thousand tokens; a thousand are committed at once', async function () {
      this.timeout(60_000);
      const transaction = await open();
      const values = (from: number): string[] =>
        Array.from({ length: 100 }, (_, n) => `value ${from + n}`);
      const made: string[] = [];
      await inParallel(
        Array.from({ length: 10 }, (_, n) => n),
        async (n) => {
          const json = values(n * 100);
          const { status, body } = await transaction.send<string[]>('POST /tokenize', { json });
          expect(status).to.equal(200);
          made.push(...body);
        },
      );
      const json = { type: 'token', data: 'x' };
      expectProblem(await transaction.create(json), 400);
      expectProblem(await transaction.create({ ...json, deduplicate_token: true }), 400);
      expectProblem(await transaction.send('POST /tokenize', { json: ['x'] }), 400);
      expectProblem(await transaction.patch(made[0] ?? '', { data: 'y' }), 400);
      expect((await transaction.commit()).status).to.equal(200);
      for (const id of made.slice(990)) expect((await tokens.read(id)).status).to.equal(200);
    });
    it('is more than 16 MiB', async function () {
      this.timeout(60_000);
      const transaction = await open();
      const json = { type: 'token', data: 'x'.repeat(1_000_000) };
      for (let n = 0; n < 16; n += 1) await transaction.created(json);
      expectProblem(await transaction.create(json), 400);
      expect((await transaction.commit()).status).to.equal(200);
    });
  });

  it('what nobody has ended is swept away, and stays ended', async () => {
    const transaction = await open();
    const { id } = await tokens.created({ type: 'token', data: 'x' });
    await transaction.patch(id, { data: 'y' });
    await transaction.created({ type: 'card', data: { number: NUMBER, cvc: '123' } });
    const still = await open();
    await still.created({ type: 'token', data: 'x', id: 'of-an-open-one' });
    const { connectionString } = vault.control.database;
    const sweeper = (clockOffsetSeconds: number) =>
      createPool({
        ...{ connectionString, max: 2, applicationName: 'test', clockOffsetSeconds },
        log: createLogger('test', 'silent'),
      });
    const [early, late] = [sweeper(HOUR_S - 60), sweeper(HOUR_S + 60)];
    const left = async (): Promise<number> => {
      const [row] = await query<{ n: number }>(
        `SELECT ((SELECT count(*) FROM staged_tokens WHERE transaction_id = $1)
          + (SELECT count(*) FROM staged_cvcs WHERE transaction_id = $1)
          + (SELECT count(*) FROM token_locks WHERE transaction_id = $1))::int4 AS n`,
        [transaction.id],
      );
      return row?.n ?? -1;
    };
    try {
      await sweepTransactions(early, 1_000);
      // Two tokens, a cvc, and the locks of both.
      expect(await left()).to.equal(5);
      // In batches of two: as many as it takes.
      while ((await sweepTransactions(late, 2)) > 0);
      expect(await left()).to.equal(0);
    } finally {
      await early.end();
      await late.end();
    }
    expectProblem(await transaction.commit(), 409);
    expect((await tokens.patch(id, { data: 'mine' })).status).to.equal(200);
  });
});
