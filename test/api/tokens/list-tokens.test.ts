import { expect } from 'chai';
import type { JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenBody, type TokenClient } from './token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from './vault.ts';

const ROUTING = '021000021';

describe('GET /tokens', () => {
  let vault: Vault;
  let tokens: TokenClient;
  /** 25 tokens in the order they were made, in a tenant that has no others. */
  let all: TokenBody[];

  before(async () => {
    vault = await startVault();
    const tenant = await vault.control.addTenant('Lists');
    tokens = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
    all = [];
    for (let i = 0; i < 25; i += 1) {
      const bank = i % 5 === 0;
      const data = bank ? { routing_number: ROUTING, account_number: `${1000 + i}` } : i;
      const containers = i < 10 ? ['/first/ten/'] : ['/others/'];
      const metadata = { n: String(i), Parity: i % 2 === 0 ? 'Even' : 'Odd' };
      const type = bank ? 'bank' : 'token';
      all.push(await tokens.created({ type, data, containers, metadata }));
    }
  });
  after(() => vault.stop());

  const idsOf = (list: TokenBody[]): string[] => list.map(({ id }) => id);
  async function listed(query: string, client = tokens): Promise<string[]> {
    const { status, body, text } = await client.list(query);
    expect(status, text.slice(0, 300)).to.equal(200);
    return idsOf(body.data);
  }
  /** Newest first; ids decide between tokens of one millisecond. */
  function newestFirst(list: TokenBody[]): string[] {
    const key = ({ created_at, id }: TokenBody) => `${created_at}/${id}`;
    return idsOf(list.toSorted((a, b) => (key(a) < key(b) ? 1 : -1)));
  }
  const numbered = (...numbers: number[]): string[] => numbers.map((n) => all[n]?.id ?? '');

  describe('pages', () => {
    it('are of 20, newest first', async () => {
      const { body } = await tokens.list();
      expect(body.pagination).to.deep.equal({
        ...{ total_items: 25, page_number: 1, page_size: 20, total_pages: 2 },
      });
      expect(idsOf(body.data)).to.deep.equal(newestFirst(all).slice(0, 20));
    });
    it('show each token as a read does', async () => {
      for (const token of (await tokens.list('?size=5')).body.data) {
        expect((await tokens.read(token.id)).body).to.deep.equal(token);
      }
    });
    it('together are every token, once', async () => {
      const pages = await Promise.all([1, 2, 3, 4].map((page) => listed(`?page=${page}&size=7`)));
      expect(pages.map((page) => page.length)).to.deep.equal([7, 7, 7, 4]);
      expect(pages.flat()).to.deep.equal(newestFirst(all));
    });
    it('past the end are empty', async () => {
      for (const page of [3, 10_000]) {
        const { body } = await tokens.list(`?page=${page}`);
        expect(body.data).to.deep.equal([]);
        expect(body.pagination).to.include({ total_items: 25, page_number: page, total_pages: 2 });
      }
    });
    it('of no size have totals and nothing else', async () => {
      for (const query of ['?size=0', '?size=0&page=9', '?size=0&metadata.n=7']) {
        const { status, body } = await tokens.list(query);
        expect([status, body.data.length, body.pagination.page_size]).to.deep.equal([200, 0, 0]);
        expect(body.pagination.total_items).to.equal(query.includes('n=7') ? 1 : 25);
      }
    });
    const BAD: [string, string][] = [
      ...['0', '-1', '1.5', '1e9', 'abc', '', '10001', '99999999999', '0x1', '%201', '1;2'].map(
        (value): [string, string] => [`?page=${value}`, 'page'],
      ),
      ...['-1', '101', '1e9', '1.5', 'abc', '', '%D9%A1'].map((value): [string, string] => [
        `?size=${value}`,
        'size',
      ]),
      ['?page=1&page=2', 'page'],
      ['?size=1&size=1', 'size'],
      ['?id[]=abc', 'id'],
      ['?id%5B%5D=abc', 'id'],
      ['?type[]=card', 'type'],
      ['?id=', 'id'],
      [`?id=${'x'.repeat(401)}`, 'id'],
      [`?${Array.from({ length: 251 }, (_, i) => `id=i${i}`).join('&')}`, 'id'],
      ['?type=', 'type'],
      ['?metadata.=x', 'metadata'],
      ['?metadata[a=x', 'metadata'],
      ['?metadata=x', 'metadata'],
      ['?metadata=[]', 'metadata'],
      ['?metadata={"a":1}', 'metadata'],
      ['?metadata={"a":{"b":"c"}}', 'metadata'],
      [`?metadata.${'k'.repeat(101)}=x`, 'metadata'],
      [`?metadata.a=${'v'.repeat(501)}`, 'metadata'],
      [`?${Array.from({ length: 51 }, (_, i) => `metadata.k${i}=v`).join('&')}`, 'metadata'],
    ];
    for (const [query, path] of BAD) {
      it(`refuse ${query.slice(0, 30)}`, async () => {
        expectProblem(await tokens.list(query), 400, path);
      });
    }
    it('refuse page and size at once', async () => {
      expectProblem(await tokens.list('?page=x&size=y'), 400, 'page', 'size');
    });
    for (const [query, status] of [
      ['?id=%00', 400],
      ['?id=%ff', 400],
      ['?id=%zz', 400],
      ['?metadata.a=%00', 400],
      [`?${Array.from({ length: 1_001 }, () => 'x=1').join('&')}`, 400],
      [`?x=${'y'.repeat(9_000)}`, 414],
    ] as const) {
      it(`answer ${status} to ${query.slice(0, 20)}`, async () => {
        expectProblem(await tokens.list(query), status);
      });
    }
  });

  describe('filters', () => {
    it('by id answer in the order asked for, each once', async () => {
      const [a = '', b = '', c = ''] = numbered(3, 17, 8);
      expect(await listed(`?id=${b}&id=${a}&id=unknown&id=${c}&id=${b}`)).to.deep.equal([b, a, c]);
      expect(await listed(`?id=${b}&id=${a}&id=${c}&size=2&page=2`)).to.deep.equal([c]);
      const { body } = await tokens.list(`?id=${a}&id=${b}&size=1`);
      expect(body.pagination).to.include({ total_items: 2, total_pages: 2 });
    });
    it('by type', async () => {
      const banks = all.filter(({ type }) => type === 'bank');
      expect(await listed('?type=bank')).to.deep.equal(newestFirst(banks));
      expect(await listed('?type=bank&size=2&page=3')).to.deep.equal(newestFirst(banks).slice(4));
      expect((await tokens.list('?type=bank&type=card&size=1')).body.pagination).to.include({
        ...{ total_items: 5, total_pages: 5 },
      });
      expect(await listed('?type=bank&type=token&size=100')).to.have.length(25);
      expect(await listed('?type=card')).to.deep.equal([]);
      expect(await listed('?type=nonsense')).to.deep.equal([]);
    });
    const N7 = [
      'metadata.n=7',
      'metadata[n]=7',
      'metadata=%7B%22n%22%3A%227%22%7D',
      'metadata%5Bn%5D=7',
    ];
    for (const query of N7) {
      it(`by metadata as ${query}`, async () => {
        expect(await listed(`?${query}`)).to.deep.equal(numbered(7));
      });
    }
    it('by metadata compare values without case, keys and everything else exactly', async () => {
      expect(await listed('?metadata.Parity=eVEN&size=100')).to.have.length(13);
      expect(await listed('?metadata.parity=Even')).to.deep.equal([]);
      for (const value of ['Eve', 'Even%20', '%25', '*', 'E_en']) {
        expect(await listed(`?metadata.Parity=${value}`)).to.deep.equal([]);
      }
    });
    it('by several metadata must all match, and the first of a repeated key counts', async () => {
      expect(await listed('?metadata.Parity=odd&metadata.n=7')).to.deep.equal(numbered(7));
      expect(await listed('?metadata.Parity=even&metadata.n=7')).to.deep.equal([]);
      expect(await listed('?metadata.n=7&metadata.n=8')).to.deep.equal(numbered(7));
    });
    it('narrow each other', async () => {
      const [a = '', b = ''] = numbered(4, 5);
      expect(await listed(`?id=${a}&id=${b}&metadata.Parity=odd`)).to.deep.equal([b]);
      expect(await listed(`?id=${a}&id=${b}&type=bank&size=1`)).to.deep.equal([b]);
      expect(await listed(`?type=bank&metadata.Parity=even&size=100`)).to.deep.equal(
        newestFirst([all[0], all[10], all[20]].filter((one) => one !== undefined)),
      );
    });
    it('find keys with dots, brackets, spaces and other scripts', async () => {
      const metadata = { 'a.b': '1', 'c[d]': 'Straße', 'e f': 'ÀÉ', '🔑': '%_', '': '' };
      const { '': _, ...kept } = metadata;
      const { id } = await vault.tokens.created({ type: 'token', data: 1, metadata: kept });
      for (const query of [
        ...['metadata.a.b=1', 'metadata[a.b]=1', 'metadata[c[d]]=STRASSE', 'metadata.c[d]=strasse'],
        ...[
          'metadata.e%20f=%C3%A0%C3%A9',
          'metadata.e+f=%C3%80%C3%89',
          'metadata.%F0%9F%94%91=%25_',
        ],
      ]) {
        expect(await listed(`?${query}`, vault.tokens), query).to.deep.equal([id]);
      }
      // Composed and decomposed letters are different values.
      expect(await listed('?metadata.e%20f=A%CC%80E%CC%81', vault.tokens)).to.deep.equal([]);
    });
    it('of another name are ignored', async () => {
      expect(await listed('?container=/first/&unknown=1&data=x&size=100')).to.have.length(25);
    });
  });

  describe('what a key may read', () => {
    let narrow: TokenClient;

    before(async () => {
      narrow = await narrowClient();
    });

    async function narrowClient(): Promise<TokenClient> {
      const tenant = await vault.control.addTenant('Narrow');
      const maker = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
      for (const container of ['/a/', '/a/b/', '/ab/', '/', '/c/', '/c/d/']) {
        const request: JsonObject = { id: `in ${container.replaceAll('/', '.')}`, type: 'token' };
        await maker.created({ ...request, data: 'clear', mask: 'masked', containers: [container] });
      }
      const rules = REVEAL_ALL.map((rule) => ({ ...rule, container: '/a/' }));
      const masked = { ...REVEAL_ALL[0], priority: 2, container: '/c/d/', transform: 'mask' };
      return vault.clientWith({ rules: [...rules, masked as (typeof rules)[0]] }, tenant);
    }

    it('is all it sees, in data and in totals', async () => {
      const { body } = await narrow.list('?size=100');
      const shown = Object.fromEntries(body.data.map(({ id, data }) => [id, data]));
      const expected = { 'in .a.': 'clear', 'in .a.b.': 'clear', 'in .c.d.': 'masked' };
      expect(shown).to.deep.equal(expected);
      expect(body.pagination.total_items).to.equal(3);
      expect((await narrow.list('?size=1&page=3')).body.data).to.have.length(1);
      expect((await narrow.list('?size=0&type=token')).body.pagination.total_items).to.equal(3);
    });
    it('is what filters choose from', async () => {
      expect(await listed('?id=in+.ab.&id=in+.a.&id=in+.c.', narrow)).to.deep.equal(['in .a.']);
      expect(await listed('?type=bank', narrow)).to.deep.equal([]);
    });
    it('never includes another tenant', async () => {
      const query = idsOf(all.slice(0, 10))
        .map((id) => `id=${id}`)
        .join('&');
      const { body } = await vault.tokens.list(`?${query}`);
      expect([body.data, body.pagination.total_items]).to.deep.equal([[], 0]);
      expect((await vault.tokens.list('?metadata.n=7')).body.pagination.total_items).to.equal(0);
    });
  });

  it('counts right while tokens come, move and go', async () => {
    const tenant = await vault.control.addTenant('Counts');
    const client = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
    const total = async (query = '') =>
      (await client.list(`?size=0${query}`)).body.pagination.total_items;
    const made = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        client.created({ type: i % 2 === 0 ? 'token' : 'card_number', data: '4242424242424242' }),
      ),
    );
    expect([await total(), await total('&type=token')]).to.deep.equal([40, 20]);
    await Promise.all(made.slice(0, 10).map(({ id }) => client.patch(id, { containers: ['/x/'] })));
    expect([await total(), await total('&type=token')]).to.deep.equal([40, 20]);
    const x = await vault.clientWith(
      { rules: REVEAL_ALL.map((rule) => ({ ...rule, container: '/x/' })) },
      tenant,
    );
    expect((await x.list('?size=0')).body.pagination.total_items).to.equal(10);
    await Promise.all(made.slice(5, 15).map(({ id }) => client.remove(id)));
    expect([await total(), await total('&type=token')]).to.deep.equal([30, 15]);
    expect((await x.list('?size=0')).body.pagination.total_items).to.equal(5);
  });

  it('refuses a page that would be over 16 MiB, and serves it in smaller ones', async () => {
    const tenant = await vault.control.addTenant('Large tokens');
    const large = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
    const data = 'x'.repeat(1_000_000);
    for (let i = 0; i < 18; i += 1) await large.created({ type: 'token', data });
    expectProblem(await large.list('?size=20'), 400, 'size');
    const { status, body } = await large.list('?size=9&page=2');
    expect(status).to.equal(200);
    expect(body.data).to.have.length(9);
    expect(body.pagination.total_items).to.equal(18);
  });
});
