import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { AccessRule } from '../../../shared/access/access-rules.ts';
import type { JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenBody, type TokenClient } from './token-client.ts';
import { HOUR_S, startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 12, expiration_year: 2030 };
const MASKED = { ...CARD, number: 'XXXXXXXXXXXX4242' };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('POST /tokenize', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const tokenize = <T = JsonObject>(json: unknown, client = tokens) => client.tokenize<T>(json);
  const tokenized = <T>(json: unknown, client = tokens) => client.tokenized<T>(json);

  const dataOf = async (id: string): Promise<unknown> => (await tokens.read(id)).body.data;
  const total = async (): Promise<number> =>
    (await tokens.list('?size=0')).body.pagination.total_items;

  it('replaces values by ids and token requests by tokens, at any depth', async () => {
    const body = await tokenized<{
      first: string;
      card: TokenBody;
      tags: [string, TokenBody, number[]];
      nothing: null;
    }>({
      first: 'Ann',
      card: { type: 'card', data: { ...CARD, cvc: '123' } },
      tags: ['a', { type: 'token', data: 'b' }, [1.5, true]],
      nothing: null,
    });
    expect(body).to.have.all.keys('first', 'card', 'tags', 'nothing');
    expect(body.first).to.match(UUID);
    expect(await dataOf(body.first)).to.equal('Ann');
    expect(body.card).to.deep.include({ type: 'card', data: MASKED, containers: ['/pci/high/'] });
    expect(await dataOf(body.card.id)).to.deep.equal({ ...CARD, cvc: '123' });
    const [tag, token, [number, flag]] = body.tags;
    expect(await dataOf(tag)).to.equal('a');
    expect(await dataOf(token.id)).to.equal('b');
    expect(await dataOf(String(number))).to.equal(1.5);
    expect(await dataOf(String(flag))).to.equal(true);
    expect(body.nothing).to.equal(null);
  });

  it('takes a token request, a value or a list as the whole body', async () => {
    const token = await tokenized<TokenBody>({ type: 'card', data: CARD, metadata: { k: 'v' } });
    expect(token.data).to.deep.equal(MASKED);
    expect(token).to.deep.equal({
      ...(await tokens.read(token.id)).body,
      data: MASKED,
    });
    expect(await dataOf(await tokenized<string>('alone'))).to.equal('alone');
    expect(await tokenized([])).to.deep.equal([]);
    expect(await tokenized(null)).to.equal(null);
    expect(await tokenized({ a: null, b: {} })).to.deep.equal({ a: null, b: {} });
  });

  it('serves the path with a slash behind it, as clients send it', async () => {
    const { status } = await tokens.send('POST /tokenize/', { json: { a: 'x' } });
    expect(status).to.equal(200);
  });

  it('keeps what JSON can say, exactly', async () => {
    const text = '{"a":"\\u0000\\ud83d\\ude00","__proto__":-0,"b":1e-7}';
    const headers = { 'content-type': 'application/json' };
    const answer = await tokens.send('POST /tokenize', { body: text, headers });
    const ids = JSON.parse(answer.text) as Record<string, string>;
    expect(Object.keys(ids)).to.deep.equal(['a', '__proto__', 'b']);
    expect((await tokens.read(ids.a ?? '')).body.data).to.equal('\0😀');
    const zero = Object.getOwnPropertyDescriptor(ids, '__proto__')?.value as string;
    expect((await tokens.read(zero)).text).to.contain('"data":-0,');
  });

  it('takes all members of a token request', async () => {
    const id = `chosen-${randomUUID()}`;
    const [first, second] = await tokenized<[TokenBody, TokenBody]>([
      { type: 'token', id, data: 'x', containers: ['/A/'], mask: 'shown', expires_at: '1/1/2099' },
      { type: 'card_number', id: "{{ data | alias_card: 'false', 'true' }}", data: NUMBER },
    ]);
    expect(first).to.deep.include({ id, data: 'shown', containers: ['/a/'] });
    expect(first.expires_at).to.equal('2099-01-01T00:00:00.000Z');
    expect(second.id).to.match(/^\d{12}4242$/);
    expect(await dataOf(second.id)).to.equal(NUMBER);
  });

  describe('all or none', () => {
    const good = { type: 'card', data: CARD };
    async function expectNothingStored(json: unknown, status: number, ...paths: string[]) {
      const before = await total();
      expectProblem(await tokenize(json), status, ...paths);
      expect(await total()).to.equal(before);
    }

    it('stores nothing beside a request that is not valid, and names it', async () => {
      const bad = { type: 'card', data: { number: '4242424242424243' } };
      await expectNothingStored({ a: good, b: ['x', bad] }, 400, 'b.1.data.number');
      await expectNothingStored({ a: good, b: { type: 'card', data: null } }, 400, 'b.data');
      await expectNothingStored([good, { type: 'token', data: 1, id: 'ab' }], 400, '1.id');
      await expectNothingStored([good, { ...good, search_indexes: 'x' }], 400, '1.search_indexes');
      await expectNothingStored([good, { ...good, mask: '{{' }], 400, '1.mask');
      await expectNothingStored(bad, 400, 'data.number');
    });
    it('nor beside one that only its evaluation refuses', async () => {
      const noIndex = { ...good, search_indexes: ['{{ data.nothing }}'] };
      await expectNothingStored(['x', noIndex], 400, '1.search_indexes.0');
      await expectNothingStored(['x', { ...good, expires_at: '1/1/2020' }], 400, '1.expires_at');
      const reveals = { ...good, id: '{{ data.number }}' };
      await expectNothingStored(['x', reveals], 400, '1.id');
    });
    it('nor beside an id that is taken', async () => {
      const { id } = await tokens.created({ type: 'token', data: 1 });
      await expectNothingStored(['x', { type: 'token', data: 2, id }, good], 409);
      expect(await dataOf(id)).to.equal(1);
    });
    it('nor when two of its requests want one id', async () => {
      const id = randomUUID();
      const twice = { type: 'token', data: 1, id };
      await expectNothingStored({ a: twice, b: { ...twice, data: 2 } }, 409);
      expectProblem(await tokens.read(id), 404);
    });
    it('nor when the names of members could be data', async () => {
      const body = { [NUMBER]: { type: 'card', data: { number: 1 } } };
      await expectNothingStored(body, 400, '*.data.number');
    });
  });

  describe('ids', () => {
    it('of a token that has expired are free', async () => {
      const id = `expiring-${randomUUID()}`;
      const expires_at = new Date(Date.now() + 60_000).toISOString();
      await tokens.created({ type: 'token', data: 'old', id, expires_at });
      expectProblem(await tokenize({ type: 'token', data: 'new', id }), 409);
      const later = await vault.later(120);
      const [, token] = await tokenized<[string, TokenBody]>(
        ['beside', { type: 'token', data: 'new', id }],
        later,
      );
      expect(token.id).to.equal(id);
      expect((await later.read(id)).body.data).to.equal('new');
    });
    it('that another transaction holds are 503, and nothing is stored', async () => {
      const [id, beside] = [`held-${randomUUID()}`, `beside-${randomUUID()}`];
      const expires_at = new Date(Date.now() + 60_000).toISOString();
      await tokens.created({ type: 'token', data: 'old', id, expires_at });
      const holder = await vault.control.pool.connect();
      try {
        await holder.query('BEGIN');
        await holder.query('SELECT 1 FROM tokens WHERE id = $1 FOR UPDATE', [id]);
        const later = await vault.later(120);
        const wanted = [beside, id].map((one) => ({ type: 'token', data: 'new', id: one }));
        expectProblem(await tokenize(['x', ...wanted, ...wanted], later), 503);
      } finally {
        await holder.query('ROLLBACK');
        holder.release();
      }
      expectProblem(await tokens.read(beside), 404);
    });
    it('that an expression cannot find often enough become UUIDs', async () => {
      const digits = Array.from({ length: 30 }, () => ({
        type: 'token',
        data: 'abc',
        id: "{{ data | slice: 0, 2 | append: '7' }}",
      }));
      const made = await tokenized<TokenBody[]>(digits);
      const ids = made.map(({ id }) => id);
      expect(new Set(ids).size).to.equal(30);
      expect(ids.filter((id) => !UUID.test(id))).to.deep.equal(['ab7']);
    });
    it('wanted by many requests at once, in any order, go to exactly one of them', async () => {
      const ids = Array.from({ length: 10 }, () => randomUUID());
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, round) => {
          const wanted = round % 2 === 0 ? ids : ids.toReversed();
          return tokenize(wanted.map((id) => ({ type: 'token', id, data: round })));
        }),
      );
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).to.deep.equal([200, ...Array.from({ length: 7 }, () => 409)]);
      const winner = answers.findIndex(({ status }) => status === 200);
      for (const id of ids) expect(await dataOf(id)).to.equal(winner);
    });
  });

  describe('what the key may do', () => {
    const rule = (container: string): AccessRule => ({
      ...{ priority: 1, container, transform: 'redact', permissions: ['token:create'] },
    });
    it('needs token:create', async () => {
      const reader = await vault.clientWith({ permissions: ['token:read', 'token:use'] });
      expectProblem(await tokenize({ a: 'x' }, reader), 403);
      expectProblem(await tokenize({}, reader), 403);
    });
    it('needs it in the container of every token', async () => {
      const cards = await vault.clientWith({ rules: [rule('/pci/')] });
      const before = await total();
      const card = { type: 'card', data: CARD };
      expectProblem(await tokenize({ card, name: 'Ann' }, cards), 403);
      expect(await total()).to.equal(before);
      const made = await tokenized<{ card: TokenBody }>({ card }, cards);
      expect(made.card).not.to.have.property('data');
    });
    it('never answers clear data or a cvc, even to a key that may reveal it', async () => {
      const card = { type: 'card', data: { ...CARD, cvc: '987' } };
      const answer = await tokenize({ card, plain: 'clear-secret' });
      expect(answer.text).not.to.contain(NUMBER).and.not.contain('987"');
      expect(answer.text).not.to.contain('clear-secret');
    });
    it('is allowed to public keys', async () => {
      const browser = await vault.clientWith({ type: 'public', permissions: ['token:create'] });
      expect(await tokenized<string>('x', browser)).to.match(UUID);
    });
  });

  it('keeps a cvc for its hour', async () => {
    const cvc = '123';
    const [card] = await tokenized<TokenBody[]>([{ type: 'card', data: { ...CARD, cvc } }]);
    expect(await dataOf(card?.id ?? '')).to.deep.equal({ ...CARD, cvc });
    const later = await vault.later(HOUR_S + 60);
    expect((await later.read(card?.id ?? '')).body.data).to.deep.equal(CARD);
  });

  describe('limits', () => {
    it('takes 100 tokens in a request, and no more', async () => {
      const values = (count: number) => Array.from({ length: count }, (_, index) => `v${index}`);
      const ids = await tokenized<string[]>(values(100));
      expect(new Set(ids).size).to.equal(100);
      expect(await dataOf(ids[99] ?? '')).to.equal('v99');
      const before = await total();
      expectProblem(await tokenize(values(101)), 400, 'body');
      expect(await total()).to.equal(before);
    });
    it('refuses bodies that are not JSON, too large, or in a transaction that does not exist', async () => {
      const plain = { body: 'x', headers: { 'content-type': 'text/plain' } };
      expectProblem(await tokens.send('POST /tokenize', plain), 415);
      const broken = { body: '{', headers: { 'content-type': 'application/json' } };
      expectProblem(await tokens.send('POST /tokenize', broken), 400);
      const large = { json: 'x'.repeat(1024 * 1024) };
      expectProblem(await tokens.send('POST /tokenize', large), 413);
      const headers = { 'bt-transaction-id': randomUUID() };
      expectProblem(await tokens.send('POST /tokenize', { json: 'x', headers }), 404);
    });
    it('has no other methods', async () => {
      expectProblem(await tokens.send('GET /tokenize'), 405);
    });
  });
});
