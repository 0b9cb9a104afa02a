import { expect } from 'chai';
import { expectProblem, type TokenBody, type TokenClient } from './token-client.ts';
import { HOUR_S, startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
/** Spec: Token expiration; facts 5.6. All name one instant, whatever the server's time zone. */
const ACCEPTED: [string, string][] = [
  ['8/26/2035 7:23:57 PM -07:00', '2035-08-27T02:23:57.000Z'],
  ['8/26/2035 7:23:57 PM', '2035-08-26T19:23:57.000Z'],
  ['1/2/2035 3:04:05 PM +02:00', '2035-01-02T13:04:05.000Z'],
  ['1/2/2035 12:00:00 AM', '2035-01-02T00:00:00.000Z'],
  ['1/2/2035 12:00:00 PM +14:00', '2035-01-01T22:00:00.000Z'],
  ['1/2/2035 12:00:00 PM -12:00', '2035-01-03T00:00:00.000Z'],
  ['1/2/2035', '2035-01-02T00:00:00.000Z'],
  ['2/29/2036', '2036-02-29T00:00:00.000Z'],
  ['3/13/2033 2:30:00 AM', '2033-03-13T02:30:00.000Z'],
  ['11/6/2033 1:30:00 AM', '2033-11-06T01:30:00.000Z'],
  ['2035-01-02T03:04:05Z', '2035-01-02T03:04:05.000Z'],
  ['2035-01-02T03:04:05.678+01:00', '2035-01-02T02:04:05.678Z'],
  ['2035-12-31T00:00:00+00:00', '2035-12-31T00:00:00.000Z'],
  ['2035-01-02', '2035-01-02T00:00:00.000Z'],
  ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
];
const REFUSED = [
  ...[
    '2/30/2035',
    '13/1/2035',
    '2/29/2035',
    '0/0/0',
    '0/1/2035',
    '1/0/2035',
    '1/32/2035',
    '1/1/35',
  ],
  ...['1/2/2035 3:04:05 PM +15:00', '1/2/2035 3:04:05 PM +05:75', '1/2/2035 13:04:05 PM'],
  ...[
    '1/2/2035 3:60:05 PM',
    '1/2/2035 3:04:05',
    '2035-13-01',
    '2035-02-30T00:00:00Z',
    '10000-01-01',
  ],
  ...['275761-01-01T00:00:00Z', '', ' ', 'soon', 'Infinity', '2035', '1893456000', '2035-1-2'],
  ...['2035-01-02T24:00:00Z', '2035-01-02T03:04:05 Z', '٢٠٣٥-٠١-٠٢', '1/2/2035 ', 'Jan 2 2035'],
  ...['9'.repeat(1_000_000), `1/1/2035${' '.repeat(100_000)}`, `1/1/${'2'.repeat(500_000)}`],
  ...['2020-01-01', '1/2/2020', '0001-01-01T00:00:00Z', '1/2/2020 3:04:05 PM -07:00'],
];

describe('expires_at', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const inSeconds = (seconds: number): string =>
    new Date(Date.now() + seconds * 1_000).toISOString();
  const create = (seconds: number, over: object = {}): Promise<TokenBody> =>
    tokens.created({ type: 'token', data: 'x', expires_at: inSeconds(seconds), ...over });

  for (const [text, instant] of ACCEPTED) {
    it(`accepts ${text} and answers ${instant}`, async () => {
      const created = await tokens.created({ type: 'token', data: 'x', expires_at: text });
      expect(created.expires_at).to.equal(instant);
      expect((await tokens.read(created.id)).body.expires_at).to.equal(instant);
      const other = await tokens.created({ type: 'token', data: 'x' });
      expect((await tokens.patch(other.id, { expires_at: text })).body.expires_at).to.equal(
        instant,
      );
    });
  }
  it('names the same instant in every time zone of the server', async () => {
    const { TZ } = process.env;
    try {
      for (const zone of ['Asia/Kolkata', 'America/New_York', 'Pacific/Kiritimati']) {
        process.env.TZ = zone;
        for (const [text, instant] of ACCEPTED) {
          const created = await tokens.created({ type: 'token', data: 'x', expires_at: text });
          expect(created.expires_at, zone).to.equal(instant);
          expect((await tokens.read(created.id)).body.expires_at, zone).to.equal(instant);
        }
      }
    } finally {
      if (TZ === undefined) delete process.env.TZ;
      else process.env.TZ = TZ;
    }
  });
  for (const text of REFUSED) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))}`, async () => {
      const answer = await tokens.create({ type: 'token', data: 'x', expires_at: text });
      expectProblem(answer, 400, 'expires_at');
    });
  }
  it('refuses this very moment, and what has just passed', async () => {
    for (const seconds of [0, -1, -0.001]) {
      const request = { type: 'token', data: 'x', expires_at: inSeconds(seconds) };
      expectProblem(await tokens.create(request), 400, 'expires_at');
    }
  });
  it('is judged by the clock of the database', async () => {
    const later = await vault.later(2 * HOUR_S);
    const request = { type: 'token', data: 'x', expires_at: inSeconds(HOUR_S) };
    expectProblem(await later.create(request), 400, 'expires_at');
    const { id } = await tokens.created(request);
    expectProblem(await later.patch(id, {}), 404);
    const fresh = await later.created({ type: 'token', data: 'x' });
    expectProblem(
      await later.patch(fresh.id, { expires_at: inSeconds(HOUR_S) }),
      400,
      'expires_at',
    );
  });

  describe('once it has passed', () => {
    it('ends the token for every operation', async () => {
      const later = await vault.later(2 * HOUR_S);
      const { id } = await create(HOUR_S, { metadata: { expiring: 'yes' } });
      const query = '?metadata.expiring=yes';
      expect((await tokens.read(id)).status).to.equal(200);
      expect((await tokens.list(query)).body.pagination.total_items).to.equal(1);

      expectProblem(await later.read(id), 404);
      expectProblem(await later.patch(id, { expires_at: null }), 404);
      expectProblem(await later.remove(id), 404);
      for (const filter of [query, `?id=${id}`]) {
        const { data, pagination } = (await later.list(filter)).body;
        expect([data, pagination.total_items]).to.deep.equal([[], 0]);
      }
      expect((await tokens.read(id)).status).to.equal(200);
    });
    it('takes it out of the totals of lists without filters', async () => {
      const [soon, later] = [await vault.later(0), await vault.later(2 * HOUR_S)];
      const totals = async (client: TokenClient) =>
        [
          (await client.list('?size=0')).body.pagination.total_items,
          (await client.list('?size=0&type=bank')).body.pagination.total_items,
        ] as const;
      const [all, banks] = await totals(soon);
      const [allLater, banksLater] = await totals(later);
      const data = { routing_number: '021000021', account_number: '12345' };
      await tokens.created({ type: 'bank', data, expires_at: inSeconds(HOUR_S) });
      expect(await totals(soon)).to.deep.equal([all + 1, banks + 1]);
      expect(await totals(later)).to.deep.equal([allLater, banksLater]);
    });
    it('frees the id', async () => {
      const later = await vault.later(2 * HOUR_S);
      await create(HOUR_S, { id: 'reused', data: 'first', metadata: { first: 'yes' } });
      const request = { id: 'reused', type: 'token', data: 'second' };
      expect((await tokens.create(request)).status).to.equal(409);
      const second = await later.created(request);
      expect(second).not.to.have.any.keys('expires_at', 'metadata');
      expect((await tokens.read('reused')).body.data).to.equal('second');
      expect((await tokens.list('?metadata.first=yes')).body.data).to.deep.equal([]);
      expect((await tokens.list('?id=reused')).body.pagination.total_items).to.equal(1);
    });
    it('frees the id for one of many writers', async () => {
      const later = await vault.later(2 * HOUR_S);
      await create(HOUR_S, { id: 'contested' });
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          later.create({ id: 'contested', type: 'token', data: i }),
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).to.deep.equal([201, ...Array(9).fill(409)]);
    });
    it('frees its contents for a new token', async () => {
      const later = await vault.later(2 * HOUR_S);
      const request = { type: 'token', data: 'unique-and-expiring', deduplicate_token: true };
      const first = await create(HOUR_S, request);
      expect((await tokens.created(request)).id).to.equal(first.id);
      const second = await later.created(request);
      expect(second.id).not.to.equal(first.id);
      expect(second._extras).to.deep.equal({ deduplicated: false });
    });
    it('is not undone by a patch that comes too late', async () => {
      const { id } = await create(HOUR_S);
      const moved = await tokens.patch(id, { expires_at: inSeconds(3 * HOUR_S) });
      expect(moved.status).to.equal(200);
      expect((await (await vault.later(2 * HOUR_S)).read(id)).status).to.equal(200);
      expectProblem(await (await vault.later(4 * HOUR_S)).read(id), 404);
    });
  });

  it('keeps a token until the second it names', async () => {
    const { id } = await create(HOUR_S, { type: 'card_number', data: NUMBER });
    expect((await (await vault.later(HOUR_S - 60)).read(id)).body.data).to.equal(NUMBER);
    expectProblem(await (await vault.later(HOUR_S + 1)).read(id), 404);
  });
});
