import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { AccessRule, Transform } from '../../../shared/access/access-rules.ts';
import type { TestTenant } from '../../support/control-plane.ts';
import type { Answer, JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenClient, type TokenPage } from './token-client.ts';
import { HOUR_S, startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 12, expiration_year: 2030 };
const MASKED = { ...CARD, number: 'XXXXXXXXXXXX4242' };

const rule = (container: string, transform: Transform, priority = 1): AccessRule => ({
  priority,
  container,
  transform,
  permissions: ['token:search'],
});

/** Everything but searching is done by another key, so that searching needs nothing else. */
const MAKER: AccessRule = {
  ...rule('/', 'reveal'),
  permissions: ['token:create', 'token:update', 'token:delete', 'token:read'],
};

describe('POST /tokens/search', () => {
  let vault: Vault;
  /** Of a tenant with the tokens below, and no others. */
  let tenant: TestTenant;
  let maker: TokenClient;
  let searcher: TokenClient;
  let fingerprint: string;
  let creator: string;

  before(async () => {
    vault = await startVault();
    tenant = await vault.control.addTenant('Searched');
    maker = await vault.clientWith({ rules: [MAKER] }, tenant);
    searcher = await vault.clientWith({ rules: [rule('/', 'reveal')] }, tenant);
    const card = await maker.created({
      ...{ id: 'card-1', type: 'card', data: { ...CARD, cvc: '987' }, metadata: { Order: 'Äb 7' } },
      search_indexes: ['{{ data.number }}', '{{ data.expiration_month }}'],
    });
    fingerprint = card.fingerprint ?? '';
    creator = card.created_by;
    await maker.created({
      ...{ id: 'ssn-1', type: 'social_security_number', data: '123-45-6789' },
      metadata: { Order: '8', 'a b:c': 'x', 'd.e': "it's" },
    });
    await maker.created({
      ...{ id: 'text-1', type: 'token', data: 'Some Text', containers: ['/cust-1/'] },
      search_indexes: ['{{ data }}'],
    });
    await maker.created({ id: 'text-2', type: 'token', data: 'b', containers: ['/cust-1/a/'] });
    await maker.created({ id: 'text-3', type: 'token', data: 'c', containers: ['/cust-10/'] });
    await maker.patch('text-3', { metadata: { late: 'yes' } });
  });
  after(() => vault.stop());

  const search = (json: JsonObject, client = searcher): Promise<Answer<TokenPage>> =>
    client.send<TokenPage>('POST /tokens/search', { json });

  async function found(query: string, client = searcher): Promise<string[]> {
    const answer = await search({ query }, client);
    expect(answer.status, answer.text.slice(0, 500)).to.equal(200);
    const ids = answer.body.data.map(({ id }) => id);
    expect(answer.body.pagination).to.deep.equal({
      ...{ total_items: ids.length, page_number: 1, page_size: 20 },
      total_pages: Math.ceil(ids.length / 20),
    });
    return ids;
  }

  const ALL = ['text-3', 'text-2', 'text-1', 'ssn-1', 'card-1'];
  const today = () => new Date().toISOString().slice(0, 10);

  const queries: [string | (() => string), string[]][] = [
    ['id:card-1', ['card-1']],
    ['id:Card-1', []],
    ['type:token', ['text-3', 'text-2', 'text-1']],
    ['type:nothing', []],
    ['type:card OR type:social_security_number', ['ssn-1', 'card-1']],
    [`data:${NUMBER}`, ['card-1']],
    ['data:12', ['card-1']],
    ['data:123456789', ['ssn-1']],
    ['data:"123-45-6789"', ['ssn-1']],
    ['data:6789', ['ssn-1']],
    ['data:"sOME tEXT"', ['text-1']],
    ['data:Some', []],
    ['data:987', []],
    [() => `fingerprint:${fingerprint}`, ['card-1']],
    [() => `fingerprint:${fingerprint.toLowerCase()}`, []],
    ['container:/pci/high/', ['card-1']],
    ['container:"/cust-1/"', ['text-1']],
    ['container:"/cust-1/*"', ['text-2', 'text-1']],
    ['container:/CUST-1*', ['text-3', 'text-2', 'text-1']],
    ['container:/*', ALL],
    ['container:/', []],
    ['container:/cust_1/*', []],
    ['metadata.Order:8', ['ssn-1']],
    ['metadata.Order:"äB 7"', ['card-1']],
    ['metadata.order:8', []],
    ['metadata.a\\ b\\:c:x', ['ssn-1']],
    [`metadata.d.e:"it's"`, ['ssn-1']],
    [`metadata.x:"'; DROP TABLE tokens; --"`, []],
    [() => `created_by:${creator}`, ALL],
    [() => `created_by:${creator.toUpperCase()}`, ALL],
    ['created_by:nobody', []],
    [() => `modified_by:${creator}`, ['text-3']],
    [() => `NOT modified_by:${creator}`, ['text-2', 'text-1', 'ssn-1', 'card-1']],
    [() => `modified_at:[${today()} TO *]`, ['text-3']],
    ['NOT modified_at:[* TO *]', ['text-2', 'text-1', 'ssn-1', 'card-1']],
    [() => `created_at:[* TO ${today()}]`, ALL],
    ['created_at:[2000-01-01 TO 2001-01-01]', []],
    ['created_at:{9999-12-31 TO *}', []],
    ['NOT type:token', ['ssn-1', 'card-1']],
    ['NOT data:12 AND NOT data:6789', ['text-3', 'text-2', 'text-1']],
    ['data:12 AND data:4242424242424242 AND type:card', ['card-1']],
    ['data:12 AND data:6789', []],
    ['data:Some\\ Text AND data:"SOME TEXT"', ['text-1']],
    ['(data:12 OR data:6789) AND metadata.Order:8', ['ssn-1']],
    ['data:12 OR id:text-2 OR metadata.late:yes', ['text-3', 'text-2', 'card-1']],
    ['type:token AND (data:"some text" OR NOT container:/cust-1*)', ['text-1']],
    ['id:card-1 AND NOT id:card-1', []],
    ['', ALL],
    ['  ', ALL],
  ];
  for (const [query, expected] of queries) {
    it(`finds ${expected.join(', ') || 'nothing'} by ${query}`, async () => {
      expect(await found(typeof query === 'string' ? query : query())).to.deep.equal(expected);
    });
  }

  it('finds all tokens without a query, also when it is null', async () => {
    for (const body of [{}, { query: null, page: null, size: null }, { unknown: 1 }]) {
      expect((await search(body)).body.data.map(({ id }) => id)).to.deep.equal(ALL);
    }
  });

  it('pages with exact totals, newest first', async () => {
    const query = 'NOT id:text-2';
    const pages = [1, 2, 3].map((page) => search({ query, page, size: 3 }));
    const [first, second, third] = (await Promise.all(pages)).map(({ body }) => body);
    expect(first?.pagination).to.deep.equal({
      ...{ total_items: 4, page_number: 1, page_size: 3, total_pages: 2 },
    });
    const ids = [first, second, third].map((page) => page?.data.map(({ id }) => id));
    expect(ids).to.deep.equal([['text-3', 'text-1', 'ssn-1'], ['card-1'], []]);
    expect(third?.pagination.total_items).to.equal(4);
    const totals = (await search({ query, size: 0 })).body;
    expect(totals.data).to.deep.equal([]);
    expect(totals.pagination).to.include({ total_items: 4, page_size: 0, total_pages: 0 });
  });

  describe('what the key may see', () => {
    const withRules = (...rules: AccessRule[]) => vault.clientWith({ rules }, tenant);
    const shown = async (client: TokenClient, query: string) =>
      (await search({ query }, client)).body.data.map(({ id, data }) => [id, data]);

    it('needs token:search', async () => {
      const other = await vault.clientWith({ permissions: ['token:read', 'token:use'] }, tenant);
      expectProblem(await search({ query: 'id:card-1' }, other), 403);
      expectProblem(await search({ query: '((' }, other), 403);
      expectProblem(await search({ query: 'id:card-1' }, maker), 403);
    });
    it('is each token as its rule says, and none without a rule', async () => {
      const client = await withRules(rule('/cust-1/', 'redact'), rule('/pci/', 'mask', 2));
      expect(await shown(client, 'container:/*')).to.deep.equal([
        ['text-2', undefined],
        ['text-1', undefined],
        ['card-1', MASKED],
      ]);
      expect(await shown(client, 'data:12 OR data:6789 OR id:text-3')).to.deep.equal([
        ['card-1', MASKED],
      ]);
      expect((await search({ query: 'NOT id:x' }, client)).body.pagination.total_items).to.equal(3);
      expect((await search({}, client)).body.pagination.total_items).to.equal(3);
      expect(await found(`fingerprint:${fingerprint}`, client)).to.deep.equal(['card-1']);
      expect(await found('id:ssn-1', client)).to.deep.equal([]);
    });
    it('is masked under a plain permission', async () => {
      const client = await vault.clientWith({ permissions: ['token:search'] }, tenant);
      expect(await shown(client, 'id:card-1')).to.deep.equal([['card-1', MASKED]]);
    });
    it('never has a cvc', async () => {
      const { text, body } = await search({ query: 'id:card-1' });
      expect(body.data[0]?.data).to.deep.equal(CARD);
      expect(text).not.to.contain('cvc').and.not.contain('987"');
    });
    it('ends at the tenant', async () => {
      const other = await vault.clientWith({ rules: [rule('/', 'reveal')] });
      for (const query of ['id:card-1', `data:${NUMBER}`, `fingerprint:${fingerprint}`, '!id:x']) {
        expect(await found(query, other), query).to.deep.equal([]);
      }
    });
    it('is what there is now: no expired tokens, no old values', async () => {
      const own = await vault.control.addTenant('Changing');
      const change = await vault.clientWith({ rules: [MAKER] }, own);
      const look = await vault.keyWith({ rules: [rule('/', 'reveal')] }, own);
      const client = await vault.later(0, look);
      const expires_at = new Date(Date.now() + HOUR_S * 1000).toISOString();
      const index = { search_indexes: ['{{ data }}'], metadata: { k: 'v' } };
      const token = { type: 'token', data: 'first', ...index, expires_at };
      const { id } = await change.created(token);
      expect(await found('data:first AND metadata.k:v', client)).to.deep.equal([id]);
      await change.patch(id, { data: 'second', metadata: { k: 'w' } });
      expect(await found('data:first OR metadata.k:v', client)).to.deep.equal([]);
      expect(await found('data:second AND metadata.k:w', client)).to.deep.equal([id]);
      const later = await vault.later(2 * HOUR_S, look);
      for (const query of ['data:second', `id:${id}`, 'NOT id:x', '']) {
        expect(await found(query, later), query).to.deep.equal([]);
      }
      await change.remove(id);
      expect(await found(`data:second OR id:${id}`, client)).to.deep.equal([]);
    });
  });

  describe('refuses', () => {
    const bad: [string, JsonObject, string][] = [
      ['what is not of the language', { query: 'data:secret (' }, 'query'],
      ['a field that does not exist', { query: `number:${NUMBER}` }, 'query'],
      ['more than 200 characters', { query: `data:${'x'.repeat(196)}` }, 'query'],
      ['a query that is no text', { query: { id: 'x' } }, 'query'],
      ['NUL', { query: 'data:\0' }, 'query'],
      ['page 0', { page: 0 }, 'page'],
      ['page 10001', { page: 10_001 }, 'page'],
      ['page 1.5', { page: 1.5 }, 'page'],
      ['size 101', { size: 101 }, 'size'],
      ['size -1', { size: -1 }, 'size'],
      ['size as text', { size: '20' }, 'size'],
    ];
    for (const [name, body, path] of bad) {
      it(name, async () => {
        const answer = await search(body);
        expectProblem(answer, 400, path);
        expect(answer.text).not.to.contain('secret');
      });
    }
    it('other bodies and methods', async () => {
      expectProblem(await searcher.send('POST /tokens/search', { json: [] }), 400);
      const text = { body: '{}', headers: { 'content-type': 'text/plain' } };
      expectProblem(await searcher.send('POST /tokens/search', text), 415);
      expectProblem(await searcher.send('PUT /tokens/search', { json: {} }), 405);
    });
  });

  it('leaves a token whose id is "search" where it is', async () => {
    const own = await vault.clientWith({ rules: [MAKER] }, await vault.control.addTenant('Named'));
    await own.created({ type: 'token', data: randomUUID(), id: 'search' });
    expect((await own.read('search')).status).to.equal(200);
    expect((await own.remove('search')).status).to.equal(204);
  });
});
