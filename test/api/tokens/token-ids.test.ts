import { expect } from 'chai';
import { exchange } from '../../support/raw-http.ts';
import { expectProblem, type TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NUMBER = '4242424242424242';
const FORBIDDEN = [...'#/\\+?[]|&=%<>{}^'];

describe('token ids', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const create = (id: unknown, data: unknown = 'x') => tokens.create({ id, type: 'token', data });
  /** Statuses of GET requests whose targets are sent as they are. */
  async function statusOfPath(path: string): Promise<number | undefined> {
    const port = Number(new URL(vault.url).port);
    const head = [`GET ${path} HTTP/1.1`, 'Host: localhost', `BT-API-KEY: ${vault.key}`, '', ''];
    const { answers } = await exchange(port, head.join('\r\n'), 1);
    return answers[0]?.status;
  }

  describe('that are given', () => {
    const REFUSED = [
      ...['', 'a', 'ab', 'x'.repeat(401), ' abc', 'abc ', '\tabc', 'a\nbc', 'a\u0000bc', '.', '..'],
      ...[
        'a\u200Fbc',
        'a\u200Bbc',
        'a\u00ADbc',
        'a\u2028bc',
        'a\u0085bc',
        '\uFEFFabc',
        'a\u007Fbc',
      ],
      ...FORBIDDEN.map((character) => `ab${character}c`),
    ];
    for (const id of REFUSED) {
      it(`are not ${JSON.stringify(id).slice(0, 20)}`, async () => {
        expectProblem(await create(id), 400, 'id');
      });
    }
    const ACCEPTED = [
      ...[
        'abc',
        '...',
        'x'.repeat(400),
        'with space',
        'a@b.example',
        'semi;colon:and,more',
        '🔑🔑🔑',
      ],
      ...['"quoted"', "it's", '~!$()*`_-.', 'ключ', 'é'.repeat(400), 'key', 'constructor'],
      ...[
        '__proto__',
        'then',
        '漢'.repeat(400),
        'ABC',
        'cafe\u0301',
        'caf\u00e9',
        '00000000',
        ':id',
      ],
    ];
    for (const id of ACCEPTED) {
      it(`may be ${JSON.stringify(id).slice(0, 20)}, at every operation`, async () => {
        const { status, body, headers } = await create(id);
        expect([status, body.id]).to.deep.equal([201, id]);
        expect((await tokens.send(`GET ${headers.get('location')}`)).body.id).to.equal(id);
        expect((await tokens.patch(id, { data: 'y' })).body.id).to.equal(id);
        const listed = await tokens.list(`?id=${encodeURIComponent(id)}`);
        expect(listed.body.data.map((token) => token.data)).to.deep.equal(['y']);
        expect((await create(id)).status).to.equal(409);
        expect((await tokens.remove(id)).status).to.equal(204);
        expect((await tokens.read(id)).status).to.equal(404);
      });
    }
    it('that differ by case or by normalisation form alone are different tokens', async () => {
      for (const id of ['Same-Id', 'same-id', 'id-\u00e9', 'id-e\u0301']) {
        expect((await create(id, id)).status).to.equal(201);
      }
      expect((await tokens.read('same-id')).body.data).to.equal('same-id');
      expect((await tokens.read('id-e\u0301')).body.data).to.equal('id-e\u0301');
    });
    it('exist once, also when 50 requests come at once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => create('contested', `writer ${i}`)),
      );
      const statuses = answers.map((answer) => answer.status).sort();
      expect(statuses).to.deep.equal([201, ...Array(49).fill(409)]);
      const winner = answers.findIndex((answer) => answer.status === 201);
      expect((await tokens.read('contested')).body.data).to.equal(`writer ${winner}`);
      expect((await tokens.list('?id=contested')).body.pagination.total_items).to.equal(1);
    });
    it('are refused with 409 that says nothing of the token there is', async () => {
      await create('taken', 'secret-of-the-first');
      const answer = await create('taken', 'other');
      expectProblem(answer, 409);
      expect(answer.text).not.to.contain('taken').and.not.contain('secret');
    });
    it('of one tenant are free in every other', async () => {
      const tenant = await vault.control.addTenant('Neighbour');
      const grants = { permissions: ['token:create', 'token:read', 'token:delete'] };
      const other = await vault.clientWith(grants, tenant);
      await tokens.created({
        id: 'shared-id',
        type: 'token',
        data: 'ours',
        metadata: { a: 'ours' },
      });
      await other.created({ id: 'shared-id', type: 'token', data: 1, metadata: { a: 'theirs' } });
      expect((await tokens.read('shared-id')).body.metadata).to.deep.equal({ a: 'ours' });
      expect((await other.read('shared-id')).body.metadata).to.deep.equal({ a: 'theirs' });
      expect((await other.remove('shared-id')).status).to.equal(204);
      expect((await tokens.read('shared-id')).status).to.equal(200);
    });
    it('can be used again after a deletion', async () => {
      await create('reborn', 'old');
      await tokens.remove('reborn');
      expect((await create('reborn', 'new')).status).to.equal(201);
      expect((await tokens.read('reborn')).body.data).to.equal('new');
    });
    it('must not contain the number they stand for', async () => {
      for (const id of [NUMBER, `card-${NUMBER}`, '4242-4242 4242-4242', '2424242424242424']) {
        const answer = await tokens.create({ id, type: 'card_number', data: NUMBER });
        expectProblem(answer, 400, 'id');
        expectProblem(
          await tokens.create({ id, type: 'card', data: { number: NUMBER } }),
          400,
          'id',
        );
      }
      const data = { routing_number: '021000021', account_number: '12345678' };
      expectProblem(await tokens.create({ id: 'acct-12345678', type: 'bank', data }), 400, 'id');
    });
  });

  describe('that are expressions', () => {
    it('keep the format, the first and the last characters asked for', async () => {
      const data = '36227206271655671';
      const id = "{{ data | alias_preserve_format: 4, 4 | append: '-a' }}";
      const { status, body } = await create(id, data);
      expect(status).to.equal(201);
      expect(body.id).to.match(/^3622[0-9]{9}5671-a$/);
      expect((await tokens.read(body.id)).body.data).to.equal(data);
    });
    it('make aliases of cards that are not the card', async () => {
      const request = { type: 'card_number', data: NUMBER };
      const ids = new Set<string>();
      for (const args of ["'true','true'", 'true, true', "'false','false'"]) {
        const id = `{{ data | alias_card: ${args} }}`;
        ids.add((await tokens.created({ ...request, id })).id);
      }
      expect(ids.size).to.equal(3);
      expect([...ids].slice(0, 2).every((id) => /^42424242[0-9]{4}4242$/.test(id))).to.equal(true);
      expect(ids.has(NUMBER)).to.equal(false);
    });
    it('may use the members of the data, but never its cvc', async () => {
      const data = { number: NUMBER, cvc: '987' };
      const id = 'card-{{ data.number | last4 }}-{{ data.cvc }}-x';
      expect((await tokens.created({ id, type: 'card', data })).id).to.equal('card-4242--x');
    });
    const REFUSED: [string, string, unknown][] = [
      ['that give nothing', '{{ data.missing }}', {}],
      ['that give an empty text', "{{ data | remove: 'x' }}", 'x'],
      ['that give two characters', '{{ data }}', 'ab'],
      ['that give 401 characters', '{{ data }}', 'x'.repeat(401)],
      ['that give a forbidden character', '{{ data }}', 'abc/def'],
      ['that give a control character', '{{ data }}', 'abc\u0000'],
      ['that give an object', '{{ data }}', { a: 1 }],
      ['that give a list', '{{ data }}', ['abc']],
      ['that give null', '{{ data.a }}', { a: null }],
      ['that are malformed', '{{ data', 'abc'],
      ['with an unknown filter', '{{ data | nope }}', 'abc'],
      ['with a tag', '{% if data %}abc{% endif %}', 'abc'],
    ];
    for (const [what, id, data] of REFUSED) {
      it(`${what} are refused`, async () => expectProblem(await create(id, data), 400, 'id'));
    }
    it('that give the card number are refused', async () => {
      for (const id of ['{{ data }}', "{{ data | append: '-x' }}", 'n{{ data | reverse }}']) {
        expectProblem(await tokens.create({ id, type: 'card_number', data: NUMBER }), 400, 'id');
      }
    });
    it('that give a number or a boolean are taken as text', async () => {
      expect((await create('{{ data }}', 12345)).body.id).to.equal('12345');
      expect((await create('{{ data }}', false)).body.id).to.equal('false');
    });
    it('give a UUID when the alias is taken and never another', async () => {
      expect((await create('{{ data }}', 'fixed-alias')).body.id).to.equal('fixed-alias');
      expect((await create('{{ data }}', 'fixed-alias')).body.id).to.match(UUID_V4);
    });
    it('give UUIDs when the space of aliases is exhausted', async () => {
      const id = 'n-{{ data | alias_preserve_format }}';
      const ids: string[] = [];
      for (let i = 0; i < 30; i += 1) ids.push((await create(id, '7')).body.id);
      expect(new Set(ids).size).to.equal(30);
      const aliases = ids.filter((one) => /^n-[0-9]$/.test(one));
      expect(aliases.length).to.be.within(1, 10);
      expect(ids.filter((one) => UUID_V4.test(one)).length).to.equal(30 - aliases.length);
    });
  });

  describe('in a path', () => {
    it('are decoded once', async () => {
      await create('aAb', 'x');
      expect(await statusOfPath('/tokens/a%41b')).to.equal(200);
      expect(await statusOfPath('/tokens/%61%41%62')).to.equal(200);
      expect(await statusOfPath('/tokens/a%2541b')).to.equal(404);
      expect(await statusOfPath('/tokens/a%252541b')).to.equal(404);
    });
    const ODD: [string, number][] = [
      ['/tokens/a%00b', 400],
      ['/tokens/%2e%2e', 400],
      ['/tokens/%2E', 400],
      ['/tokens/..', 400],
      ['/tokens/a%2fb', 400],
      ['/tokens/a%5cb', 400],
      ['/tokens/%zzz', 400],
      ['/tokens/abc%', 400],
      ['/tokens/%ff%fe', 404],
      ['/tokens/%c0%af', 404],
      ['/tokens/%ed%a0%80', 404],
      ['/tokens/a%0d%0ab', 404],
      ['/tokens/a%23b', 404],
      ['/tokens/ab', 404],
      ['/tokens/a%3Fb', 404],
      [`/tokens/${'x'.repeat(401)}`, 404],
      [`/tokens/${'x'.repeat(6_000)}`, 404],
      ['/tokens/aab/extra', 404],
      ['/tokens//aab', 404],
      ['/Tokens/aab', 404],
    ];
    for (const [path, status] of ODD) {
      it(`${path.slice(0, 24)} is ${status}`, async () => {
        expect(await statusOfPath(path)).to.equal(status);
      });
    }
    it('may be followed by a slash', async () => {
      await create('slashed', 'x');
      expect(await statusOfPath('/tokens/slashed/')).to.equal(200);
    });
  });

  it('are gone once they are deleted, for every operation', async () => {
    const { id } = await tokens.created({ type: 'token', data: 'x', metadata: { gone: 'yes' } });
    const removed = await tokens.remove(id);
    expect([removed.status, removed.text]).to.deep.equal([204, '']);
    expectProblem(await tokens.remove(id), 404);
    expectProblem(await tokens.read(id), 404);
    expectProblem(await tokens.patch(id, { data: 'y' }), 404);
    expect((await tokens.list('?metadata.gone=yes')).body.pagination.total_items).to.equal(0);
    const { rows } = await vault.control.pool.query(
      'SELECT 1 FROM token_terms WHERE token_id = $1 UNION SELECT 1 FROM tokens WHERE id = $1',
      [id],
    );
    expect(rows).to.deep.equal([]);
  });
});
