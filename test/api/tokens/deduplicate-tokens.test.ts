import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { TestTenant } from '../../support/control-plane.ts';
import { call, type JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenBody, type TokenClient } from './token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from './vault.ts';

const PUBLIC_MEMBERS = ['id', 'tenant_id', 'type', 'fingerprint', 'containers', '_extras'];
const NUMBER = '4242424242424242';

describe('deduplicated tokens', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  /** Each test has contents of its own. */
  const contents = (): string => `contents ${randomUUID()}`;
  const request = (data: unknown, over: JsonObject = {}): JsonObject => ({
    ...{ type: 'token', data, deduplicate_token: true },
    ...over,
  });

  describe('at creation', () => {
    it('are the first token, with 201 and its address', async () => {
      const data = contents();
      const first = await tokens.create(request(data, { metadata: { a: 'b' }, mask: 'shown' }));
      expect(first.body._extras).to.deep.equal({ deduplicated: false });
      const again = await tokens.create(request(data, { metadata: { c: 'd' }, id: 'ignored-id' }));
      expect(again.status).to.equal(201);
      expect(again.body).to.deep.equal({ ...first.body, _extras: { deduplicated: true } });
      expect(again.headers.get('location')).to.equal(`/tokens/${first.body.id}`);
      expectProblem(await tokens.read('ignored-id'), 404);
    });
    it('are found whether or not the first one asked for it', async () => {
      const data = contents();
      const plain = await tokens.created({ type: 'token', data });
      expect((await tokens.created(request(data))).id).to.equal(plain.id);
      const separate = await tokens.created({ type: 'token', data });
      expect(separate.id).not.to.equal(plain.id);
      expect((await tokens.created(request(data))).id).to.equal(plain.id);
    });
    it('differ by type, and by what the fingerprint is made of', async () => {
      const number = NUMBER;
      const ids = new Set([
        (await tokens.created(request(number, { type: 'card_number' }))).id,
        (await tokens.created(request(number))).id,
        (await tokens.created(request({ number }, { type: 'card' }))).id,
        (await tokens.created(request(number, { fingerprint_expression: 'x{{ data }}' }))).id,
      ]);
      expect(ids.size).to.equal(4);
      const other = { number, expiration_month: 3, cvc: '123' };
      expect(ids.has((await tokens.created(request(other, { type: 'card' }))).id)).to.equal(true);
    });
    it('are found in any container', async () => {
      const data = contents();
      const first = await tokens.created(request(data, { containers: ['/one/'] }));
      const again = await tokens.created(request(data, { containers: ['/two/'] }));
      expect([again.id, again.containers]).to.deep.equal([first.id, ['/one/']]);
    });
    it('by a constant are one token of each type, in this tenant alone', async () => {
      const over = { fingerprint_expression: 'constant' };
      const first = await tokens.created(request('one', over));
      const again = await tokens.create(request('two', over));
      expect(again.body.id).to.equal(first.id);
      expect(again.text).not.to.contain('one').and.not.contain('two');
      const tenant = await vault.control.addTenant('Constant');
      const other = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
      expect((await other.created(request('three', over))).id).not.to.equal(first.id);
    });
    it('are still refused in a container the key may not write', async () => {
      const rules = REVEAL_ALL.map((rule) => ({ ...rule, container: '/own/' }));
      const narrow = await vault.clientWith({ rules });
      const data = contents();
      await tokens.created(request(data));
      expectProblem(await narrow.create(request(data, { containers: ['/foreign/'] })), 403);
    });
    it('are deleted like any other, and their contents are free again', async () => {
      const data = contents();
      const first = await tokens.created(request(data));
      await tokens.remove(first.id);
      const second = await tokens.created(request(data));
      expect(second.id).not.to.equal(first.id);
    });
    it('are one when 100 requests come at once', async () => {
      const data = contents();
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          tokens.create(request(data, { metadata: { n: `${i}` } })),
        ),
      );
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([201]));
      expect(new Set(answers.map(({ body }) => body.id)).size).to.equal(1);
      const fresh = answers.filter(({ body }) => body._extras?.deduplicated === false);
      expect(fresh).to.have.length(1);
      const { rows } = await vault.control.pool.query(
        'SELECT 1 FROM tokens WHERE fingerprint = $1',
        [answers[0]?.body.fingerprint],
      );
      expect(rows).to.have.length(1);
    });
    it('with an id that is taken are a conflict only when they are new', async () => {
      const data = contents();
      const first = await tokens.created(request(data, { id: 'id-of-first' }));
      expect((await tokens.created(request(data, { id: 'id-of-first' }))).id).to.equal(first.id);
      expectProblem(await tokens.create(request(contents(), { id: 'id-of-first' })), 409);
    });
  });

  describe('show of the token there is', () => {
    async function seen(grants: Parameters<Vault['clientWith']>[0]): Promise<TokenBody> {
      const number = NUMBER;
      const tenant = await vault.control.addTenant('Visible');
      const owner = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
      const card = request({ number, expiration_month: 4 }, { type: 'card', metadata: { a: 'b' } });
      const { id } = await owner.created({ ...card, search_indexes: ['{{ data.number }}'] });
      const caller = await vault.clientWith(grants, tenant);
      const answer = await caller.create(request({ number, cvc: '123' }, { type: 'card' }));
      expect([answer.status, answer.body.id]).to.deep.equal([201, id]);
      expect(answer.text).not.to.contain(`"${number}"`);
      return answer.body;
    }
    it('only that it exists, to a key that may not read', async () => {
      const body = await seen({ permissions: ['token:create'] });
      expect(body).to.have.all.keys(PUBLIC_MEMBERS);
    });
    it('only that it exists, to a key that may read elsewhere', async () => {
      const rules = REVEAL_ALL.map((rule) => ({ ...rule, container: '/elsewhere/' }));
      expect(await seen({ rules, permissions: ['token:create'] })).to.have.all.keys(PUBLIC_MEMBERS);
    });
    it('its mask, to a key that may read it masked or in clear', async () => {
      for (const grants of [
        { permissions: ['token:create', 'token:read'] },
        { rules: REVEAL_ALL },
      ]) {
        const body = await seen(grants);
        expect(body).to.include.all.keys('data', 'mask', 'metadata', 'search_indexes');
        expect((body.data as JsonObject).number).to.match(/^X+[0-9]{4}$/);
      }
    });
    it('no data, to a key that may read it redacted', async () => {
      const rules = REVEAL_ALL.map((rule) => ({ ...rule, transform: 'redact' as const }));
      const body = await seen({ rules });
      expect(body).to.include.all.keys('mask', 'metadata').and.not.have.property('data');
    });
  });

  describe('at update', () => {
    it('are the other token, and the patched one stays as it is', async () => {
      const [data, other] = [contents(), contents()];
      const first = await tokens.created(request(data));
      const second = await tokens.created(request(other, { metadata: { a: 'b' } }));
      const before = (await tokens.read(second.id)).body;
      const patch = { data, deduplicate_token: true, metadata: { a: 'changed' } };
      const answer = await tokens.patch(second.id, patch);
      expect(answer.status).to.equal(200);
      expect(answer.body).to.deep.equal({ ...first, _extras: { deduplicated: true } });
      expect((await tokens.read(second.id)).body).to.deep.equal(before);
    });
    it('hide the other token from a key that may not read it', async () => {
      const [data, other] = [contents(), contents()];
      const first = await tokens.created(request(data, { metadata: { secret: 'yes' } }));
      const second = await tokens.created(request(other));
      const writer = await vault.clientWith({ permissions: ['token:update'] });
      const answer = await writer.patch(second.id, { data, deduplicate_token: true });
      expect(answer.body.id).to.equal(first.id);
      expect(answer.body).to.have.all.keys(PUBLIC_MEMBERS);
    });
    it('do not find the token itself', async () => {
      const data = contents();
      const { id } = await tokens.created(request(data));
      const answer = await tokens.patch(id, {
        data,
        deduplicate_token: true,
        metadata: { a: 'b' },
      });
      expect([answer.body.id, answer.body.metadata]).to.deep.equal([id, { a: 'b' }]);
    });
    it('happen only when asked for', async () => {
      const [data, other] = [contents(), contents()];
      await tokens.created(request(data));
      const { id } = await tokens.created(request(other));
      expect((await tokens.patch(id, { data })).body.id).to.equal(id);
      expect((await tokens.read(id)).body.data).to.equal(data);
    });
    it('leave one of many that turn into the same', async () => {
      const made = await Promise.all(
        Array.from({ length: 10 }, () => tokens.created(request(contents()))),
      );
      const data = contents();
      const answers = await Promise.all(
        made.map(({ id }) => tokens.patch(id, { data, deduplicate_token: true })),
      );
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
      expect(new Set(answers.map(({ body }) => body.id)).size).to.equal(1);
      const read = await Promise.all(made.map(({ id }) => tokens.read(id)));
      expect(read.filter(({ body }) => body.data === data)).to.have.length(1);
    });
  });

  describe('by the settings of the tenant', () => {
    let tenant: TestTenant;
    let client: TokenClient;

    async function set(settings: Record<string, string>): Promise<void> {
      const json = { name: 'Settings', settings };
      const key = tenant.managementKey;
      expect((await call(vault.url, 'PUT /tenants/self', { key, json })).status).to.equal(200);
    }
    before(async () => {
      tenant = await vault.control.addTenant('Settings');
      client = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
    });

    it('are the rule, unless the request says otherwise', async () => {
      const data = contents();
      const first = await client.created({ type: 'token', data });
      await set({ deduplicate_tokens: 'true' });
      const again = await client.created({ type: 'token', data });
      expect([again.id, again._extras?.deduplicated]).to.deep.equal([first.id, true]);
      const separate = await client.created({ type: 'token', data, deduplicate_token: false });
      expect(separate.id).not.to.equal(first.id);
      const other = await client.created({ type: 'token', data: contents() });
      expect((await client.patch(other.id, { data })).body.id).to.equal(first.id);
      await set({ deduplicate_tokens: 'false' });
      expect((await client.created({ type: 'token', data })).id).not.to.equal(first.id);
    });
    it('have no fingerprints where the tenant wants none', async () => {
      const data = contents();
      await set({ fingerprint_tokens: 'false' });
      const plain = await client.created({ type: 'token', data });
      expect(plain).not.to.have.any.keys('fingerprint', 'fingerprint_expression');
      const asked = { type: 'token', data, fingerprint_expression: '{{ data }}' };
      expect(await client.created(asked)).to.include.all.keys('fingerprint');
      const first = await client.created(request(data));
      expect(first.id).not.to.equal(plain.id);
      expect(first).to.include.all.keys('fingerprint', 'fingerprint_expression');
      expect((await client.patch(plain.id, { metadata: { a: 'b' } })).body).not.to.have.any.keys(
        ...['fingerprint', 'fingerprint_expression'],
      );
      await set({ fingerprint_tokens: 'true' });
      const patched = await client.patch(plain.id, { metadata: { a: 'c' } });
      expect(patched.body.fingerprint).to.be.a('string');
    });
  });
});
