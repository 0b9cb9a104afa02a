import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { call, type JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenClient } from '../tokens/token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from '../tokens/vault.ts';
import { countRecords, expectReplay, keyed, keyedCreate, keyedPatch, newKey } from './keyed.ts';

const NUMBER = '4242424242424242';
const DAY_S = 86_400;

describe('writes of tokens with an idempotency key', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault?.stop());

  const create = (key: string, json: unknown, by = tokens) => keyedCreate(by, key, json);
  const patch = (key: string, id: string, json: unknown, by = tokens) =>
    keyedPatch(by, key, id, json);
  const total = async () => (await tokens.list('?size=0')).body.pagination.total_items;

  describe('have one effect and the same answer', () => {
    it('when a token is created', async () => {
      const key = newKey();
      const json = { type: 'card', data: { number: NUMBER, cvc: '123' }, metadata: { a: 'b' } };
      const before = await total();
      const first = await create(key, json);
      expect(first.status).to.equal(201);
      expectReplay(await create(key, json), first);
      expectReplay(await create(key, json), first);
      expect(await total()).to.equal(before + 1);
      expect(first.text).not.to.contain(NUMBER).and.not.contain('"cvc"');
      const { created_at } = (await tokens.read(first.body.id)).body;
      expect(first.body.created_at).to.equal(created_at);
    });
    it('whatever the later request says', async () => {
      const key = newKey();
      const first = await create(key, { type: 'token', data: 'one' });
      for (const json of [{ type: 'token', data: 'two' }, { type: 'nothing' }, [], 'text']) {
        expectReplay(await create(key, json), first);
      }
      const body = '{"not json';
      const headers = { 'content-type': 'application/json' };
      expectReplay(await tokens.send('POST /tokens', keyed(key, { body, headers })), first);
    });
    it('to the millisecond of their creation', async () => {
      for (let n = 0; n < 20; n += 1) {
        const key = newKey();
        // The answer of one that expires is sealed before the moment is known.
        const expiring = n % 2 === 0 ? {} : { expires_at: new Date(Date.now() + 60_000) };
        const first = await create(key, { type: 'token', data: 'x', ...expiring });
        expectReplay(await create(key, { type: 'token', data: 'x' }), first);
        const { created_at } = (await tokens.read(first.body.id)).body;
        expect(first.body.created_at).to.equal(created_at);
      }
    });
    it('when its id was given, or made by an expression', async () => {
      for (const id of [`id-${randomUUID()}`, '{{ data | alias_preserve_format }}']) {
        const key = newKey();
        const json = { type: 'token', data: `data ${randomUUID()}`, id };
        const first = await create(key, json);
        expect(first.status, first.text).to.equal(201);
        expectReplay(await create(key, json), first);
      }
    });
    it('when it is deduplicated', async () => {
      const json = { type: 'token', data: `data ${randomUUID()}`, deduplicate_token: true };
      const [one, two] = [newKey(), newKey()];
      const first = await create(one, json);
      expect(first.body._extras).to.deep.equal({ deduplicated: false });
      const second = await create(two, json);
      expect(second.body._extras).to.deep.equal({ deduplicated: true });
      expectReplay(await create(one, json), first);
      expectReplay(await create(two, json), second);
    });
    it('when it is changed', async () => {
      const { id } = await tokens.created({ type: 'token', data: { a: 1 } });
      const key = newKey();
      const first = await patch(key, id, { data: { b: 2 } });
      expect(first.status).to.equal(200);
      expect((await tokens.patch(id, { data: { c: 3 } })).status).to.equal(200);
      expectReplay(await patch(key, id, { data: { a: null } }), first);
      expect((await tokens.read(id)).body.data).to.deep.equal({ a: 1, b: 2, c: 3 });
    });
    it('when many are made at once', async () => {
      const key = newKey();
      const json = { a: 'one', b: { type: 'token', data: 'two' }, c: [] };
      const before = await total();
      const first = await tokens.send('POST /tokenize', keyed(key, { json }));
      expect(first.status).to.equal(200);
      expectReplay(await tokens.send('POST /tokenize', keyed(key, { json })), first);
      expect(await total()).to.equal(before + 2);
      const nothing = newKey();
      const empty = await tokens.send('POST /tokenize', keyed(nothing, { json: {} }));
      expectReplay(await tokens.send('POST /tokenize', keyed(nothing, { json })), empty);
    });
    it('when the token is gone meanwhile', async () => {
      const key = newKey();
      const first = await create(key, { type: 'token', data: 'one' });
      expect((await tokens.remove(first.body.id)).status).to.equal(204);
      expectReplay(await create(key, { type: 'token', data: 'one' }), first);
      expectProblem(await tokens.read(first.body.id), 404);
    });
  });

  describe('are independent of each other', () => {
    it('by application and by tenant', async () => {
      const key = newKey();
      const json = { type: 'token', data: 'x' };
      const tenant = await vault.control.addTenant('Other');
      const clients = [
        tokens,
        await vault.clientWith({ rules: REVEAL_ALL }),
        await vault.clientWith({ rules: REVEAL_ALL }, tenant),
      ];
      const ids = new Set<string>();
      for (const client of clients) ids.add((await create(key, json, client)).body.id);
      expect(ids.size).to.equal(3);
      for (const client of clients) ids.add((await create(key, json, client)).body.id);
      expect(ids.size).to.equal(3);
    });
    it('by operation and path', async () => {
      const key = newKey();
      const one = await create(key, { type: 'token', data: 'x' });
      const two = await tokens.created({ type: 'token', data: 'y' });
      const tokenized = await tokens.send('POST /tokenize', keyed(key, { json: 'z' }));
      expect(tokenized.status).to.equal(200);
      const patches = [
        await patch(key, one.body.id, { metadata: { of: 'one' } }),
        await patch(key, two.id, { metadata: { of: 'two' } }),
      ];
      const shown = patches.map(({ body }) => body.metadata);
      expect(shown).to.deep.equal([{ of: 'one' }, { of: 'two' }]);
    });
    it('but not by how the path is written', async () => {
      const id = `id-${randomUUID()}`;
      await tokens.created({ type: 'token', data: 'x', id });
      const key = newKey();
      const first = await patch(key, id, { metadata: { n: '1' } });
      const again = await patch(key, `%69d${id.slice(2)}/`, { metadata: { n: '2' } });
      expectReplay(again, first);
    });
  });

  describe('keep no failure', () => {
    it('of a bad request, nor of a conflict', async () => {
      const id = `id-${randomUUID()}`;
      const key = newKey();
      expectProblem(await create(key, { type: 'token' }), 400, 'data');
      await tokens.created({ type: 'token', data: 'x', id });
      expectProblem(await create(key, { type: 'token', data: 'y', id }), 409);
      expect((await tokens.remove(id)).status).to.equal(204);
      expect((await create(key, { type: 'token', data: 'y', id })).status).to.equal(201);
    });
    it('of a token that is not there yet', async () => {
      const id = `id-${randomUUID()}`;
      const key = newKey();
      expectProblem(await patch(key, id, { data: 'x' }), 404);
      await tokens.created({ type: 'token', data: 'y', id });
      expect((await patch(key, id, { data: 'z' })).status).to.equal(200);
    });
    it('of a tokenize that breaks off in the middle', async () => {
      const key = newKey();
      const before = await total();
      const id = `id-${randomUUID()}`;
      const json = ['a', { type: 'token', data: 'b', id }, { type: 'token', data: 'c', id }];
      expectProblem(await tokens.send('POST /tokenize', keyed(key, { json })), 409);
      expect(await total()).to.equal(before);
      const again = await tokens.send('POST /tokenize', keyed(key, { json: 'a' }));
      expect(again.status).to.equal(200);
    });
    it('of a denial', async () => {
      const narrow = await vault.clientWith({
        rules: REVEAL_ALL.map((rule) => ({ ...rule, container: '/own/' })),
      });
      const key = newKey();
      const json = (container: string) => ({ type: 'token', data: 'x', containers: [container] });
      expectProblem(await create(key, json('/foreign/'), narrow), 403);
      expect((await create(key, json('/own/'), narrow)).status).to.equal(201);
    });
  });

  it('refuse what is no key, after authentication', async () => {
    for (const key of [' ', 'a b', 'k'.repeat(256)]) {
      expectProblem(await create(key, { type: 'token', data: 'x' }), 400);
    }
    const { status } = await call(vault.url, 'POST /tokens', keyed('a b', { json: {} }));
    expect(status).to.equal(401);
  });

  it('mean nothing to reads and deletions', async () => {
    const records = await countRecords(vault.control.pool);
    const key = newKey();
    const { id } = await tokens.created({ type: 'token', data: 'first' });
    const read = () => tokens.send(`GET /tokens/${id}`, keyed(key));
    expect((await read()).body.data).to.equal('first');
    await tokens.patch(id, { data: 'second' });
    expect((await read()).body.data).to.equal('second');
    const json = { value: `{{ ${id} }}` };
    const detokenize = () => tokens.send<JsonObject>('POST /detokenize', keyed(key, { json }));
    expect((await detokenize()).body).to.deep.equal({ value: 'second' });
    await tokens.patch(id, { data: 'third' });
    expect((await detokenize()).body).to.deep.equal({ value: 'third' });
    expect((await tokens.send(`DELETE /tokens/${id}`, keyed(key))).status).to.equal(204);
    expectProblem(await tokens.send(`DELETE /tokens/${id}`, keyed(key)), 404);
    expect(await countRecords(vault.control.pool)).to.equal(records);
  });

  describe('after a while', () => {
    const at = async (seconds: number, key: string) =>
      create(key, { type: 'token', data: 'new' }, await vault.later(seconds));

    it('are replayed for 24 hours, and new after them', async () => {
      const key = newKey();
      const first = await create(key, { type: 'token', data: 'old' });
      expectReplay(await at(DAY_S - 10, key), first);
      const late = await at(DAY_S + 1, key);
      expect(late.status).to.equal(201);
      expect(late.body.id).not.to.equal(first.body.id);
      expectReplay(await at(DAY_S + 1, key), late);
    });
    it('are new for every kind of write', async () => {
      const { id } = await tokens.created({ type: 'token', data: 'x' });
      const key = newKey();
      const first = await patch(key, id, { metadata: { n: '1' } });
      const later = await vault.later(DAY_S + 1);
      const late = await patch(key, id, { metadata: { n: '2' } }, later);
      expect(late.body.metadata).to.deep.equal({ n: '2' });
      expect(first.body.metadata).to.deep.equal({ n: '1' });
    });
  });

  it('leave nothing of a card in clear in the database', async () => {
    const number = '5555555555554444';
    const json = { type: 'card', data: { number, cvc: '987' }, metadata: { who: 'metadata-mark' } };
    const key = newKey();
    const { status, body } = await create(key, json);
    expect(status).to.equal(201);
    // From now on the record holds the answer.
    expect((await tokens.remove(body.id)).status).to.equal(204);
    const { rows } = await vault.control.pool.query<{ row: string }>(
      `SELECT i::text || coalesce(encode(sealed, 'escape'), '') AS row FROM idempotency_records i`,
    );
    expect(rows.length).to.be.at.least(1);
    // Four digits alone are in the hex of ciphertexts now and then.
    const marks = [number, '55554444', 'XXXX4444', 'metadata-mark', key];
    for (const { row } of rows) for (const mark of marks) expect(row).not.to.contain(mark);
  });
});
