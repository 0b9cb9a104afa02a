import { expect } from 'chai';
import type { JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 7, expiration_year: 2031 };
/** Where an expression may stand, and the path by which a bad one is reported. */
const PLACES: [string, (expression: string) => JsonObject, string][] = [
  ['mask', (expression) => ({ mask: expression }), 'mask'],
  ['a leaf of a mask', (expression) => ({ mask: { a: [expression] } }), 'mask'],
  ['id', (expression) => ({ id: expression }), 'id'],
  [
    'fingerprint_expression',
    (expression) => ({ fingerprint_expression: expression }),
    'fingerprint_expression',
  ],
  ['search_indexes', (expression) => ({ search_indexes: [expression] }), 'search_indexes.0'],
];

describe('expressions of tokens', () => {
  let vault: Vault;
  let tokens: TokenClient;
  let masked: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
    masked = await vault.clientWith({ permissions: ['token:read'] });
  });
  after(() => vault.stop());

  /** What a masked read shows of `data` under `mask`; absent when it shows nothing. */
  async function shown(mask: unknown, data: unknown, type = 'token'): Promise<unknown> {
    const created = await tokens.created({ type, data, mask });
    const { body } = await masked.read(created.id);
    expect(body.data).to.deep.equal(created.data);
    return body.data;
  }

  describe('malformed', () => {
    const MALFORMED = [
      ...['{{', '}}', '{{ }}', '{{{{data}}}}', '{{ data }} {{ data', '{{ data', 'data }}'],
      ...['{{ data | }}', '{{ | upcase }}', '{{ data. }}', '{{ data[ }}', '{{ data["x }}'],
      ...['{% for x in data %}{% endfor %}', '{% include "/etc/passwd" %}', '{% raw %}{{data}}'],
      ...[
        '{{ data | nope }}',
        '{{ data | constructor }}',

        "{{ data | append: ' }}",
      ],
      ...[
        '{{ data | upcase: }}',
        `{{ data ${'| upcase '.repeat(21)}}}`,
        `{{ ${'x'.repeat(4_100)} }}`,
      ],
    ];
    for (const [place, request, path] of PLACES) {
      it(`are refused in ${place}`, async () => {
        for (const expression of MALFORMED) {
          if (place === 'fingerprint_expression' && expression.length > 400) continue;
          const answer = await tokens.create({
            type: 'token',
            data: 'abc',
            ...request(expression),
          });
          expect(answer.status, expression).to.equal(400);
          expect(Object.keys(JSON.parse(answer.text).errors)[0]).to.match(new RegExp(`^${path}`));
        }
      });
      it(`are refused in a patch of ${place}`, async () => {
        if (place === 'id') return;
        const { id } = await tokens.created({ type: 'token', data: 'abc' });
        const before = (await tokens.read(id)).body;
        for (const expression of ['{{ data', '{{ data | nope }}', '{% x %}']) {
          expectProblem(await tokens.patch(id, request(expression)), 400);
        }
        expect((await tokens.read(id)).body).to.deep.equal(before);
      });
    }
    it('are refused with a NUL character where they are stored in clear', async () => {
      const { id } = await tokens.created({ type: 'token', data: 'abc' });
      for (const [member, path] of [
        [{ fingerprint_expression: 'abc\0' }, 'fingerprint_expression'],
        [{ search_indexes: ['abc\0'] }, 'search_indexes.0'],
      ] as const) {
        expectProblem(await tokens.create({ type: 'token', data: 1, ...member }), 400, path);
        expectProblem(await tokens.patch(id, member), 400, path);
      }
    });
    it('are answered without their text', async () => {
      const answer = await tokens.create({
        type: 'token',
        data: 1,
        mask: "{{ data | s3cret: 'pin' }}",
      });
      expectProblem(answer, 400);
      expect(answer.text).not.to.contain('pin');
    });
  });

  describe('own properties', () => {
    const PATHS = [
      'data.constructor',
      'data.__proto__',
      'data.number.length',
      'data["constructor"]',
    ];
    for (const path of [...PATHS, 'data.toString', 'data.hasOwnProperty', 'constructor', 'this']) {
      it(`alone are read: ${path} is nothing`, async () => {
        expect(await shown({ a: `{{ ${path} }}` }, { number: '123' })).to.deep.equal({ a: null });
        expect(await shown(`<{{ ${path} }}>`, { number: '123' })).to.equal('<>');
      });
    }
    it('are read when the data has them', async () => {
      const text =
        '{"type":"token","data":{"__proto__":{"a":"own"}},"mask":"{{ data.__proto__.a }}"}';
      expect((await tokens.createText(text)).body.data).to.equal('own');
    });
  });

  describe('bombs', () => {
    const BOMBS = [
      `{{ data ${'| append: data '.repeat(20)}}}`,
      "{{ data | replace: 'x', data | replace: 'x', data | replace: 'x', data }}",
      '{{ data | pad_left: 1000000000, "x" }}',
      `{{ data | split: '' ${"| join: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' ".repeat(3)}}}`,
    ];
    for (const bomb of BOMBS) {
      it(`end small: ${bomb.slice(0, 40)}`, async () => {
        const data = 'x'.repeat(10_000);
        for (const member of [{ id: bomb }, { search_indexes: [bomb] }]) {
          expect((await tokens.create({ type: 'token', data, ...member })).status).to.equal(400);
        }
        expect(await shown({ bomb, fixed: 1 }, data)).to.deep.equal({ fixed: 1 });
      });
    }
    it('of widths are malformed', async () => {
      const mask = "{{ 'now' | date: '%9999999d' }}";
      expectProblem(await tokens.create({ type: 'token', data: 1, mask }), 400, 'mask');
    });
    it('of slices are cut at what there is', async () => {
      expect(await shown('{{ data | slice: 0, 1000000000 }}', 'abc')).to.equal('abc');
    });
    it('of many expressions in one mask are refused', async () => {
      const mask = Array.from({ length: 1_001 }, () => '{{ data }}');
      expectProblem(await tokens.create({ type: 'token', data: 'x', mask }), 400);
    });
    it('of a mask that grows by patches are refused at the size of a body', async () => {
      const { id } = await tokens.created({
        type: 'token',
        data: 'x',
        mask: { a: 'a'.repeat(600_000) },
      });
      expectProblem(await tokens.patch(id, { mask: { b: 'b'.repeat(600_000) } }), 400, 'mask');
      expect((await tokens.read(id)).body.mask).to.have.all.keys('a');
    });
  });

  describe('masks', () => {
    it('keep the types of what they show', async () => {
      const data = { n: 1.5, t: true, z: null, o: { a: [1] }, s: 'x' };
      const mask = { n: '{{ data.n }}', t: '{{data.t}}', z: '{{ data.z }}', o: '{{ data.o }}' };
      expect(await shown({ ...mask, mixed: '{{ data.n }}-{{ data.o }}' }, data)).to.deep.equal({
        ...{ n: 1.5, t: true, z: null, o: { a: [1] } },
        mixed: '1.5-{"a":[1]}',
      });
    });
    for (const mask of ['text', 7, 0, false, true, '', [], {}, [1, null, { a: [] }], { a: null }]) {
      it(`without expressions are shown as they are: ${JSON.stringify(mask)}`, async () => {
        expect(await shown(mask, 'secret')).to.deep.equal(mask);
      });
    }
    it('take data as text, never as another expression', async () => {
      const data = { a: '{{ data.b }}', b: 'secret' };
      expect(await shown({ a: '{{ data.a }}' }, data)).to.deep.equal({ a: '{{ data.b }}' });
      expect(await shown('{{ data.a }} {{ data.a }}', data)).to.equal('{{ data.b }} {{ data.b }}');
    });
    it('leave out a leaf that cannot be evaluated', async () => {
      const mask = {
        bad: '{{ data.a | to_number }}',
        list: ['{{ data | to_string }}'],
        good: 'ok',
      };
      expect(await shown(mask, { a: 'x' })).to.deep.equal({ list: [null], good: 'ok' });
    });
    it('accept text behind a path, and show nothing for it', async () => {
      const mask = {
        number: '{{ data.number, reveal_last: 4 }}',
        year: '{{ data.expiration_year }}',
      };
      const { id, mask: stored } = await tokens.created({ type: 'card', data: CARD, mask });
      expect(stored).to.deep.equal(mask);
      const read = await masked.read(id);
      expect(read.body.data).to.deep.equal({ year: 2031 });
      expect(read.text).not.to.contain(NUMBER);
    });
    it('refuse counts that are negative or no integers', async () => {
      for (const count of ['-1', '1.5', "'x'", 'nil']) {
        const mask = `{{ data | reveal_last: ${count} }}`;
        const { status, body } = await tokens.create({ type: 'card_number', data: NUMBER, mask });
        if (status === 201) expect(body).not.to.have.property('data');
        else expect(status).to.equal(400);
      }
    });
  });

  describe('indexes and fingerprints', () => {
    const INDEXES: [string, unknown, number][] = [
      ['{{ data.number }}', { number: 'x' }, 201],
      ['{{ data.n }}', { n: 7 }, 201],
      ['{{ data.n }}', { n: false }, 201],
      ['fixed', 'x', 201],
      ['{{ data.missing }}', {}, 400],
      ['{{ data }}', {}, 400],
      ['{{ data }}', [1], 400],
      ['{{ data }}', '', 400],
      ['{{ data.n }}', { n: null }, 400],
      ['{{ data }}', 'x'.repeat(1_000_000), 400],
      ['', 'x', 400],
    ];
    for (const [expression, data, status] of INDEXES) {
      it(`index ${JSON.stringify(data).slice(0, 16)} by "${expression}": ${status}`, async () => {
        const request = { type: 'token', data, search_indexes: ['fixed', expression] };
        const answer = await tokens.create(request);
        if (status === 400) expectProblem(answer, 400, 'search_indexes.1');
        else expect(answer.status, answer.text).to.equal(201);
      });
    }
    it('fingerprint by data and metadata', async () => {
      const expression = '{{ data.a }}/{{ metadata.b }}';
      const make = async (a: string, b: string) =>
        (
          await tokens.created({
            ...{ type: 'token', data: { a }, metadata: { b } },
            fingerprint_expression: expression,
          })
        ).fingerprint;
      const first = await make('1', '2');
      expect(await make('1', '2')).to.equal(first);
      expect(await make('1', '3')).not.to.equal(first);
      expect(await make('3', '2')).not.to.equal(first);
    });
    it('fingerprint data of a whole megabyte', async () => {
      const data = Array.from({ length: 100_000 }, (_, i) => i);
      const first = await tokens.created({ type: 'token', data });
      expect((await tokens.created({ type: 'token', data })).fingerprint).to.equal(
        first.fingerprint,
      );
    });
  });
});
