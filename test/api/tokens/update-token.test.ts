import { expect } from 'chai';
import type { JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenBody, type TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 7, expiration_year: 2031 };

/** RFC 7396 appendix A: original, patch, result. A result of null is no data, which tokens refuse. */
const VECTORS: [unknown, unknown, unknown][] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

describe('PATCH /tokens/{id}', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  async function patched(original: JsonObject, patch: unknown): Promise<TokenBody> {
    const { id } = await tokens.created(original);
    const answer = await tokens.patch(id, patch);
    expect(answer.status, answer.text.slice(0, 300)).to.equal(200);
    return (await tokens.read(id)).body;
  }
  /** A patch that is refused, and changes nothing. */
  async function refused(original: JsonObject, patch: unknown, ...paths: string[]): Promise<void> {
    const { id } = await tokens.created(original);
    const before = (await tokens.read(id)).text;
    expectProblem(await tokens.patch(id, patch), 400, ...paths);
    expect((await tokens.read(id)).text).to.equal(before);
  }

  describe('media type', () => {
    const TYPES: [string | undefined, number][] = [
      ['application/merge-patch+json', 200],
      ['application/merge-patch+json; charset=utf-8', 200],
      ['Application/Merge-Patch+JSON;charset="UTF-8"', 200],
      ['application/json', 415],
      ['application/json-patch+json', 415],
      ['application/merge-patch+json; charset=utf-16', 415],
      ['text/plain', 415],
      [undefined, 415],
    ];
    for (const [type, status] of TYPES) {
      it(`${type} is answered with ${status}`, async () => {
        const { id } = await tokens.created({ type: 'token', data: 1 });
        const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
        const body = Uint8Array.from(Buffer.from('{"data":2}'));
        const answer = await tokens.send(`PATCH /tokens/${id}`, { body, headers });
        expect(answer.status).to.equal(status);
        expect((await tokens.read(id)).body.data).to.equal(status === 200 ? 2 : 1);
      });
    }
  });

  describe('data', () => {
    for (const [original, patch, result] of VECTORS) {
      it(`${JSON.stringify(original)} with ${JSON.stringify(patch)}`, async () => {
        const token = { type: 'token', data: original };
        if (result === null) await refused(token, { data: patch }, 'data');
        else expect((await patched(token, { data: patch })).data).to.deep.equal(result);
      });
    }
    it('may become falsy', async () => {
      for (const data of ['', 0, false, [], {}]) {
        expect((await patched({ type: 'token', data: ['x'] }, { data })).data).to.deep.equal(data);
      }
    });
    it('keeps exact numbers and odd keys that are not touched', async () => {
      const { body } = await tokens.createText(
        '{"type":"token","data":{"n":-0,"__proto__":{"a":1},"x":1e21,"constructor":2}}',
      );
      const patch = '{"data":{"__proto__":{"b":2},"constructor":null}}';
      await tokens.patchText(body.id, patch);
      expect((await tokens.read(body.id)).text).to.contain(
        '"data":{"n":-0,"__proto__":{"a":1,"b":2},"x":1e+21}',
      );
    });
    it('is validated like new data of its type', async () => {
      const card = { type: 'card', data: CARD };
      await refused(card, { data: { number: '4242424242424241' } }, 'data.number');
      await refused(card, { data: { number: null } }, 'data.number');
      await refused(card, { data: { expiration_month: 13 } }, 'data.expiration_month');
      await refused(card, { data: 'text' }, 'data');
      const data = { routing_number: '021000021', account_number: '12345' };
      await refused(
        { type: 'bank', data },
        { data: { routing_number: '021000022' } },
        'data.routing_number',
      );
      await refused({ type: 'card_number', data: NUMBER }, { data: 4242 }, 'data');
    });
    it('merges into a card', async () => {
      const body = await patched(
        { type: 'card', data: CARD },
        { data: { number: '5555555555554444', expiration_year: null, holder: 'x' } },
      );
      expect(body.data).to.deep.equal({ number: '5555555555554444', expiration_month: 7 });
    });
    it('is refused when it is nested too deep or too large', async () => {
      const token = { type: 'token', data: { a: 'x'.repeat(600_000) } };
      await refused(token, { data: { b: 'x'.repeat(600_000) } }, 'data');
      const { id } = await tokens.created(token);
      const deep = `{"data":${'['.repeat(65)}${']'.repeat(65)}}`;
      expectProblem(await tokens.patchText(id, deep), 400);
      const large = JSON.stringify({ data: 'x'.repeat(1024 * 1024) });
      expectProblem(await tokens.patchText(id, large), 413);
    });
    it('takes fingerprint, mask and indexes with it', async () => {
      const { id } = await tokens.created({ type: 'card', data: CARD });
      const other = await tokens.created({ type: 'card', data: { number: '5555555555554444' } });
      const answer = await tokens.patch(id, { data: { number: '5555555555554444' } });
      expect(answer.body.fingerprint).to.equal(other.fingerprint);
      expect(answer.body.data).to.deep.include({ number: 'XXXXXXXXXXXX4444' });
      const reader = await vault.clientWith({ permissions: ['token:read'] });
      expect((await reader.read(id)).body.data).to.deep.equal(answer.body.data);
    });
  });

  describe('mask', () => {
    const mask = { number: '{{ data.number | last4 }}', fixed: { a: 1 } };

    it('merges, and null removes it', async () => {
      const merged = await patched(
        { type: 'card', data: CARD, mask },
        { mask: { fixed: { b: 2 } } },
      );
      expect(merged.mask).to.deep.equal({ ...mask, fixed: { a: 1, b: 2 } });
      const removed = await patched({ type: 'card', data: CARD, mask }, { mask: null });
      expect(removed).not.to.have.property('mask');
    });
    it('of a type is merged into like any other', async () => {
      const body = await patched({ type: 'card', data: CARD }, { mask: { expiration_year: null } });
      expect(body.mask).to.have.all.keys('number', 'expiration_month');
    });
    it('that is gone shows no data any more', async () => {
      const { id } = await tokens.created({ type: 'card', data: CARD });
      const answer = await tokens.patch(id, { mask: null });
      expect(answer.body).not.to.have.any.keys('mask', 'data');
      expect((await tokens.patch(id, {})).body).not.to.have.any.keys('mask', 'data');
    });
  });

  describe('metadata', () => {
    const token = { type: 'token', data: 1, metadata: { a: '1', b: '2' } };

    it('merges, null removes one or all', async () => {
      expect((await patched(token, { metadata: { a: null, c: '3' } })).metadata).to.deep.equal({
        ...{ b: '2', c: '3' },
      });
      expect(await patched(token, { metadata: null })).not.to.have.property('metadata');
      expect((await patched(token, { data: 2 })).metadata).to.deep.equal(token.metadata);
    });
    it('is what lists find afterwards', async () => {
      const { id } = await tokens.created({ ...token, metadata: { find: 'before', keep: 'yes' } });
      await tokens.patch(id, { metadata: { find: 'after' } });
      const found = async (query: string) =>
        (await tokens.list(query)).body.data.map((one) => one.id);
      expect(await found('?metadata.find=before')).to.deep.equal([]);
      expect(await found('?metadata.find=after&metadata.keep=yes')).to.deep.equal([id]);
    });
    it('is refused when the result is not valid', async () => {
      await refused(token, { metadata: { a: 1 } }, 'metadata');
      await refused(token, { metadata: { a: { b: 'c' } } }, 'metadata');
      await refused(token, { metadata: 'text' }, 'metadata');
      const keys = Object.fromEntries(Array.from({ length: 49 }, (_, i) => [`k${i}`, 'v']));
      await refused(token, { metadata: keys }, 'metadata');
    });
  });

  describe('members that are replaced', () => {
    it('take null for their defaults', async () => {
      const original = {
        ...{ type: 'card', data: CARD, containers: ['/own/'], expires_at: '2040-01-01' },
        ...{ search_indexes: ['{{ data.number }}'], fingerprint_expression: 'x{{ data.number }}' },
      };
      const nulls = { containers: null, search_indexes: null, expires_at: null };
      const body = await patched(original, { ...nulls, fingerprint_expression: null });
      expect(body.containers).to.deep.equal(['/pci/high/']);
      expect(body.search_indexes).to.deep.equal([]);
      expect(body).not.to.have.property('expires_at');
      expect(body.fingerprint_expression).to.equal('{{ data.number }}');
    });
    it('are replaced whole', async () => {
      const original = { type: 'token', data: { a: 1, b: 2 }, search_indexes: ['{{ data.a }}'] };
      const patch = {
        search_indexes: ['{{ data.b }}'],
        containers: ['/B/'],
        expires_at: '1/2/2041',
      };
      const body = await patched(original, patch);
      expect(body.search_indexes).to.deep.equal(['{{ data.b }}']);
      expect(body.containers).to.deep.equal(['/b/']);
      expect(body.expires_at).to.equal('2041-01-02T00:00:00.000Z');
    });
    it('are validated', async () => {
      const token = { type: 'token', data: { a: 1 } };
      await refused(token, { containers: ['/a/', '/b/'] }, 'containers');
      await refused(token, { containers: '/a/' }, 'containers');
      await refused(token, { search_indexes: ['{{ data.b }}'] }, 'search_indexes.0');
      await refused(token, { search_indexes: Array(11).fill('x') }, 'search_indexes');
      await refused(token, { fingerprint_expression: '{{ x' }, 'fingerprint_expression');
      await refused(token, { expires_at: '2020-01-01' }, 'expires_at');
      await refused(token, { expires_at: 'soon' }, 'expires_at');
      await refused(token, { deduplicate_token: 'yes' }, 'deduplicate_token');
    });
    it('refuse data that an index finds nothing in', () =>
      refused(
        { type: 'token', data: { a: 1 }, search_indexes: ['{{ data.a }}'] },
        { data: { a: null } },
        'search_indexes.0',
      ));
  });

  it('never changes what is not the client’s', async () => {
    const foreign = '00000000-0000-4000-8000-000000000000';
    const { id } = await tokens.created({ type: 'token', data: 1 });
    const before = (await tokens.read(id)).body;
    const patch = { id: 'other-id', type: 'card', tenant_id: foreign, created_by: foreign };
    const times = { created_at: '2000-01-01T00:00:00Z', modified_at: '2000-01-01T00:00:00Z' };
    const { status, body } = await tokens.patch(id, { ...patch, ...times, fingerprint: 'mine' });
    expect(status).to.equal(200);
    const { modified_by, modified_at = '', ...rest } = (await tokens.read(id)).body;
    expect(rest).to.deep.equal(before);
    expect(modified_by).to.equal(before.created_by);
    expect(modified_at >= before.created_at).to.equal(true);
    expect(body.modified_at).to.equal(modified_at);
  });

  it('with nothing in it changes nothing but the time of the change', async () => {
    const { id } = await tokens.created({ type: 'card', data: { ...CARD, cvc: '123' } });
    const before = (await tokens.read(id)).body;
    const { status, body } = await tokens.patch(id, {});
    expect(status).to.equal(200);
    const { modified_at, modified_by, ...rest } = (await tokens.read(id)).body;
    expect(rest).to.deep.equal(before);
    expect([modified_at, modified_by]).to.deep.equal([body.modified_at, body.modified_by]);
  });

  it('refuses a patch that is not an object', async () => {
    const { id } = await tokens.created({ type: 'token', data: 1 });
    for (const patch of ['[]', '7', '"text"', 'null', '[{"op":"add","path":"/data","value":1}]']) {
      expectProblem(await tokens.patchText(id, patch), 400, 'body');
    }
    for (const patch of ['', '{', '{"data":1}x']) {
      expectProblem(await tokens.patchText(id, patch), 400);
    }
  });

  it('loses none of 50 parallel patches of different keys', async () => {
    const { id } = await tokens.created({ type: 'token', data: {}, metadata: {} });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        tokens.patch(id, { data: { [`k${i}`]: i }, metadata: { [`m${i}`]: String(i) } }),
      ),
    );
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(50).fill(200));
    const { body } = await tokens.read(id);
    const expected = Array.from({ length: 50 }, (_, i) => [`k${i}`, i]);
    expect(body.data).to.deep.equal(Object.fromEntries(expected));
    expect(Object.keys(body.metadata ?? {})).to.have.length(50);
    expect((await tokens.list('?metadata.m0=0&metadata.m49=49')).body.data).to.have.length(1);
  });

  it('and deletions at once end in a deletion', async () => {
    const { id } = await tokens.created({ type: 'token', data: {} });
    const [removed, ...answers] = await Promise.all([
      tokens.remove(id),
      ...Array.from({ length: 10 }, (_, i) => tokens.patch(id, { data: { a: i } })),
    ]);
    expect(removed?.status).to.equal(204);
    for (const { status } of answers) expect(status).to.be.oneOf([200, 404]);
    expectProblem(await tokens.read(id), 404);
  });
});
