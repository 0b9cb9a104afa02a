import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { call } from '../../support/http-call.ts';
import { expectProblem, type TokenClient } from '../tokens/token-client.ts';
import { HOUR_S, REVEAL_ALL, startVault, type Vault } from '../tokens/vault.ts';
import {
  begin,
  openTransaction,
  type TransactionClient,
  transactionClient,
} from './transaction-client.ts';

const contents = (): string => `contents ${randomUUID()}`;

describe('transactions', () => {
  let vault: Vault;
  let tokens: TokenClient;
  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const open = (key = vault.key): Promise<TransactionClient> => begin(vault.url, key);
  const newToken = () => tokens.created({ type: 'token', data: contents() });

  describe('are opened', () => {
    it('by an empty form with a trailing slash, for an hour', async () => {
      const { status, body } = await openTransaction(vault.url, vault.key);
      expect(status).to.equal(201);
      expect(body).to.have.all.keys('id', 'created_at', 'created_by', 'expires_at');
      expect(body.id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
      expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).to.equal(HOUR_S * 1_000);
      const { created_by } = await newToken();
      expect(body.created_by).to.equal(created_by);
    });
    it('by any valid key, and by no other', async () => {
      const powerless = await vault.keyWith({ permissions: ['token:search'] });
      expect((await openTransaction(vault.url, powerless)).status).to.equal(201);
      expectProblem(await call(vault.url, 'POST /transactions'), 401);
      expectProblem(await call(vault.url, 'GET /transactions', { key: vault.key }), 405);
    });
    it('up to a thousand of one application, whatever the others of its tenant have', async () => {
      const tenant = await vault.control.addTenant('Crowded');
      const key = await vault.keyWith({ rules: REVEAL_ALL }, tenant);
      const first = await open(key);
      await vault.control.pool.query(
        `INSERT INTO transactions (tenant_id, id, created_by, created_at, expires_at)
         SELECT tenant_id, gen_random_uuid(), created_by, created_at, expires_at
         FROM transactions, generate_series(1, 999) WHERE tenant_id = '${tenant.id}'`,
      );
      expectProblem(await openTransaction(vault.url, key), 429);
      const other = await vault.keyWith({ rules: REVEAL_ALL }, tenant);
      for (const free of [other, vault.key]) {
        expect((await openTransaction(vault.url, free)).status).to.equal(201);
      }
      expect((await first.rollback()).status).to.equal(200);
      expect((await openTransaction(vault.url, key)).status).to.equal(201);
    });
  });

  describe('make what they hold visible', () => {
    it('when they are committed, and not before', async () => {
      const live = await newToken();
      const gone = await newToken();
      const transaction = await open();
      const made = await transaction.created({
        ...{ type: 'card', data: { number: '4242424242424242', cvc: '123' } },
        ...{ id: 'made-in-transaction', metadata: { made: 'here' } },
      });
      expect(made.data).to.include({ number: 'XXXXXXXXXXXX4242' });
      const patched = await transaction.patch(live.id, { data: 'changed', metadata: { a: 'b' } });
      expect(patched.status).to.equal(200);
      expect(patched.body.metadata).to.deep.equal({ a: 'b' });
      expect((await transaction.remove(gone.id)).status).to.equal(204);

      const before = await tokens.list();
      expectProblem(await tokens.read(made.id), 404);
      expect((await tokens.read(live.id)).body.data).to.match(/^contents/);
      expect((await tokens.read(gone.id)).status).to.equal(200);
      // The header means nothing to a read: it is outside.
      expectProblem(await transaction.send(`GET /tokens/${made.id}`), 404);

      const committed = await transaction.commit();
      expect([committed.status, committed.text]).to.deep.equal([200, '']);
      const shown = (await tokens.read(made.id)).body;
      expect(shown.data).to.deep.equal({ number: '4242424242424242', cvc: '123' });
      expect({ ...shown, data: made.data }).to.deep.equal(made);
      const { data, ...changed } = (await tokens.read(live.id)).body;
      expect(data).to.equal('changed');
      expect(changed).to.include({ modified_at: patched.body.modified_at });
      expectProblem(await tokens.read(gone.id), 404);
      const found = await tokens.list('?metadata.made=here');
      expect(found.body.data.map(({ id }) => id)).to.deep.equal([made.id]);
      const after = await tokens.list();
      expect(after.body.pagination.total_items).to.equal(before.body.pagination.total_items);
    });
    it('never, when they are rolled back', async () => {
      const live = await newToken();
      const transaction = await open();
      const made = await transaction.created({ type: 'token', data: contents() });
      await transaction.patch(live.id, { data: 'changed' });
      const rolledBack = await transaction.rollback();
      expect([rolledBack.status, rolledBack.text]).to.deep.equal([200, '']);
      expectProblem(await tokens.read(made.id), 404);
      expect((await tokens.read(live.id)).body.data).to.match(/^contents/);
      expect((await tokens.read(live.id)).body.modified_at).to.equal(undefined);
      expect((await tokens.patch(live.id, { data: 'mine' })).status).to.equal(200);
      const left = await vault.control.pool.query(
        `SELECT (SELECT count(*) FROM staged_tokens WHERE transaction_id = '${transaction.id}')
           + (SELECT count(*) FROM staged_cvcs WHERE transaction_id = '${transaction.id}')
           + (SELECT count(*) FROM token_locks WHERE transaction_id = '${transaction.id}') AS n`,
      );
      expect(Number(left.rows[0]?.n)).to.equal(0);
    });
    it('with the tokens of POST /tokenize, without committing an empty one', async () => {
      const transaction = await open();
      const json = {
        card: { type: 'token', data: contents(), id: 'tokenized-here' },
        word: 'secret',
      };
      const tokenized = await transaction.send<{ word: string }>('POST /tokenize/', { json });
      expect(tokenized.status, tokenized.text).to.equal(200);
      const { word } = tokenized.body;
      expectProblem(await tokens.read(word), 404);
      expect((await transaction.commit()).status).to.equal(200);
      expect((await tokens.read(word)).body.data).to.equal('secret');
      expect((await tokens.read('tokenized-here')).status).to.equal(200);
      expect((await (await open()).commit()).status).to.equal(200);
    });
  });

  describe('see their own', () => {
    it('creates when they update and delete', async () => {
      const transaction = await open();
      const made = await transaction.created({ type: 'token', data: { a: 1, b: 2 } });
      const patched = await transaction.patch(made.id, { data: { b: null, c: 3 } });
      expect(patched.status, patched.text).to.equal(200);
      const other = await transaction.created({ type: 'token', data: 'x', id: 'made-and-gone' });
      expect((await transaction.remove(other.id)).status).to.equal(204);
      expectProblem(await transaction.remove(other.id), 404);
      expectProblem(await transaction.patch(other.id, { data: 'y' }), 404);
      // The id is free again, for everybody.
      const free = await tokens.created({ type: 'token', data: 'outside', id: other.id });
      expect(free.id).to.equal(other.id);
      await transaction.commit();
      const { body } = await tokens.read(made.id);
      expect(body.data).to.deep.equal({ a: 1, c: 3 });
      expect(body.created_at).to.equal(made.created_at);
    });
    it('deletes when they create again, with what belonged to the old one gone', async () => {
      const id = `again-${randomUUID()}`;
      await tokens.created({
        ...{ id, type: 'card', data: { number: '4242424242424242', cvc: '999' } },
        metadata: { old: id },
      });
      const transaction = await open();
      expectProblem(await transaction.create({ type: 'token', data: 'new', id }), 409);
      expect((await transaction.remove(id)).status).to.equal(204);
      const again = await transaction.created({ type: 'token', data: 'new', id });
      expectProblem(await transaction.create({ type: 'token', data: 'twice', id }), 409);
      expect((await transaction.patch(id, { data: 'newer' })).status).to.equal(200);
      expect((await tokens.read(id)).body.type).to.equal('card');
      expect((await transaction.commit()).status).to.equal(200);
      const { body } = await tokens.read(id);
      expect(body).to.include({ type: 'token', data: 'newer', created_at: again.created_at });
      expect((await tokens.list(`?metadata.old=${id}`)).body.pagination.total_items).to.equal(0);
    });
    it('updates, in their order, and may end by deleting', async () => {
      const kept = await tokens.created({ type: 'token', data: { n: 0 } });
      const gone = await newToken();
      const transaction = await open();
      for (const n of [1, 2, 3]) await transaction.patch(kept.id, { data: { [`n${n}`]: n } });
      await transaction.patch(gone.id, { data: 'changed' });
      expect((await transaction.remove(gone.id)).status).to.equal(204);
      await transaction.commit();
      expect((await tokens.read(kept.id)).body.data).to.deep.equal({ n: 0, n1: 1, n2: 2, n3: 3 });
      expectProblem(await tokens.read(gone.id), 404);
    });
    it('containers, search indexes and metadata, and count them right', async () => {
      const token = await tokens.created({
        ...{ type: 'token', data: 'x', metadata: { was: 'old' } },
        containers: ['/general/low/'],
      });
      const total = async (query: string) => (await tokens.list(query)).body.pagination.total_items;
      const before = await total('');
      const transaction = await open();
      await transaction.patch(token.id, {
        containers: ['/general/high/'],
        metadata: { was: 'new' },
      });
      await transaction.commit();
      expect((await tokens.read(token.id)).body.containers).to.deep.equal(['/general/high/']);
      expect(await total('?metadata.was=old')).to.equal(0);
      expect(await total('?metadata.was=new')).to.equal(1);
      expect(await total('')).to.equal(before);
    });
    it('parallel patches of one token, all of them', async () => {
      const token = await tokens.created({ type: 'token', data: { n: 0 } });
      const transaction = await open();
      const made = await transaction.created({ type: 'token', data: { n: 0 } });
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          transaction.patch(n % 2 === 0 ? token.id : made.id, { data: { [`n${n}`]: n } }),
        ),
      );
      expect(answers.map(({ status }) => status)).to.deep.equal(Array(12).fill(200));
      await transaction.commit();
      for (const { id } of [token, made]) {
        expect(Object.keys((await tokens.read(id)).body.data as object)).to.have.lengthOf(7);
      }
    });
  });

  it('are documented with the operations that take part in them', async () => {
    interface Described {
      operationId: string;
      parameters?: { name: string; in: string }[];
    }
    interface Document {
      paths: Record<string, Record<string, Described>>;
    }
    const { body } = await call<Document>(vault.url, 'GET /openapi.json');
    const taking = Object.values(body.paths)
      .flatMap((item) => Object.values(item))
      .filter(({ parameters = [] }) => parameters.some(({ name }) => name === 'BT-TRANSACTION-ID'))
      .map(({ operationId }) => operationId);
    const expectedIds = ['createToken', 'updateToken', 'deleteToken', 'tokenize'];
    expect(taking.toSorted()).to.deep.equal(expectedIds.toSorted());
  });
  it('of an upper-case id are the same', async () => {
    const { id } = await open();
    const transaction = transactionClient(vault.url, vault.key, id.toUpperCase());
    const made = await transaction.created({ type: 'token', data: 'x' });
    expect((await transaction.commit()).status).to.equal(200);
    expect((await tokens.read(made.id)).status).to.equal(200);
  });
});
