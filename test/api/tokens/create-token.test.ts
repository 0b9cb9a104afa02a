import { expect } from 'chai';
import type { JsonObject } from '../../support/http-call.ts';
import type { TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ISO_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const NUMBER_INDEXES = ['{{ data }}', "{{ data | remove: '-' }}", '{{ data | last4 }}'];
const LAST_FOUR = '{{ data | reveal_last: 4 }}';

/** Facts 5.1, one row per type. `masked` is what a creator sees; absent: no `data` at all. */
const TYPES: (JsonObject & { type: string; container: string })[] = [
  {
    type: 'token',
    data: { any: ['thing'] },
    container: '/general/high/',
    fingerprint_expression: '{{ data | stringify }}',
    search_indexes: [],
  },
  {
    type: 'card',
    data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 },
    masked: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 },
    mask: {
      number: '{{ data.number | reveal_last: 4 }}',
      expiration_month: '{{ data.expiration_month }}',
      expiration_year: '{{ data.expiration_year }}',
    },
    container: '/pci/high/',
    fingerprint_expression: '{{ data.number }}',
    search_indexes: [],
  },
  {
    type: 'bank',
    data: { routing_number: '021000021', account_number: '0012345678' },
    masked: { routing_number: '021000021', account_number: 'XXXXXX5678' },
    mask: {
      routing_number: '{{ data.routing_number }}',
      account_number: '{{ data.account_number | reveal_last: 4 }}',
    },
    container: '/bank/high/',
    fingerprint_expression: '{{ data.account_number }}|{{ data.routing_number }}',
    search_indexes: [],
  },
  {
    type: 'card_number',
    data: '5555555555554444',
    masked: 'XXXXXXXXXXXX4444',
    mask: LAST_FOUR,
    container: '/pci/high/',
    fingerprint_expression: '{{ data }}',
    search_indexes: [],
  },
  {
    type: 'us_bank_account_number',
    data: '00123456789',
    masked: 'XXXXXXX6789',
    mask: LAST_FOUR,
    container: '/bank/high/',
    fingerprint_expression: '{{ data }}',
    search_indexes: [],
  },
  {
    type: 'us_bank_routing_number',
    data: '021000021',
    masked: 'XXXXX0021',
    mask: LAST_FOUR,
    container: '/bank/low/',
    fingerprint_expression: '{{ data }}',
    search_indexes: [],
  },
  {
    type: 'social_security_number',
    data: '123-45-6789',
    masked: 'XXX-XX-6789',
    mask: LAST_FOUR,
    container: '/pii/high/',
    fingerprint_expression: "{{ data | remove: '-' }}",
    search_indexes: NUMBER_INDEXES,
  },
  {
    type: 'employer_id_number',
    data: '12-3456789',
    masked: 'XX-XXX6789',
    mask: LAST_FOUR,
    container: '/pii/high/',
    fingerprint_expression: "{{ data | remove: '-' }}",
    search_indexes: NUMBER_INDEXES,
  },
];

describe('POST /tokens', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  for (const { type, data, masked, container, ...defaults } of TYPES) {
    it(`gives a ${type} its container, mask, fingerprint and indexes`, async () => {
      const { body } = await tokens.create({ type, data });
      const { id, tenant_id, fingerprint, created_by, created_at, ...rest } = body;
      const shown = masked === undefined ? {} : { data: masked };
      expect(rest).to.deep.equal({ type, containers: [container], ...shown, ...defaults });
      expect(id).to.match(UUID_V4);
      expect(tenant_id).to.equal(vault.control.tenant.id);
      expect(fingerprint).to.match(/^[1-9A-HJ-NP-Za-km-z]{40,44}$/);
      expect(created_by).to.match(UUID_V4);
      expect(created_at).to.match(ISO_UTC);
      const read = await tokens.read(id);
      expect(read.status).to.equal(200);
      expect(read.body).to.deep.equal({ ...body, data });
    });
  }

  it('answers 201 with the address of the token, its trace id and no leave to cache', async () => {
    const trace = 'trace-of-the-caller';
    const json = { id: 'order 7', type: 'token', data: 1 };
    const { status, headers } = await tokens.send('POST /tokens', {
      json,
      headers: { 'bt-trace-id': trace },
    });
    expect(status).to.equal(201);
    expect(headers.get('location')).to.equal('/tokens/order%207');
    expect(headers.get('bt-trace-id')).to.equal(trace);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('content-type')).to.equal('application/json; charset=utf-8');
    const followed = await tokens.send(`GET ${headers.get('location')}`);
    expect(followed.body.id).to.equal('order 7');
  });

  it('answers everything that was asked for', async () => {
    const asked = {
      id: 'everything',
      type: 'token',
      mask: { last: '{{ data.secret | last4 }}', fixed: 7, list: [null, true, 'text'] },
      containers: ['/Vendors/A_b-9/'],
      metadata: { order: '7', '': undefined, 'key with.dot': '' },
      search_indexes: ['{{ data.secret }}'],
      fingerprint_expression: 'fixed-{{ data.secret }}',
      expires_at: '2040-01-02T03:04:05+02:00',
    };
    const { body } = await tokens.create({ ...asked, data: { secret: 'abcdef' } });
    const { tenant_id, fingerprint, created_by, created_at, ...rest } = body;
    expect(rest).to.deep.equal({
      ...asked,
      data: { last: 'cdef', fixed: 7, list: [null, true, 'text'] },
      containers: ['/vendors/a_b-9/'],
      metadata: { order: '7', 'key with.dot': '' },
      expires_at: '2040-01-02T01:04:05.000Z',
    });
  });

  it('takes null for every optional member as not given', async () => {
    const members = ['id', 'mask', 'containers', 'metadata', 'search_indexes', 'expires_at'];
    const nulls = Object.fromEntries(
      [...members, 'fingerprint_expression', 'deduplicate_token'].map((name) => [name, null]),
    );
    const given = { type: 'card_number', data: '4242424242424242' };
    const [plain, nulled] = [
      await tokens.created(given),
      await tokens.created({ ...given, ...nulls }),
    ];
    expect(Object.keys(nulled)).to.deep.equal(Object.keys(plain));
    expect(nulled.mask).to.equal(LAST_FOUR);
    expect(nulled.containers).to.deep.equal(['/pci/high/']);
  });

  it('ignores members it does not know and those it sets itself', async () => {
    const foreign = '00000000-0000-4000-8000-000000000000';
    const body = await tokens.created({
      ...{ type: 'token', data: 'x', unknown: { deep: [1] }, privacy: { impact_level: 'high' } },
      ...{ tenant_id: foreign, created_by: foreign, created_at: '2000-01-01T00:00:00Z' },
      ...{ fingerprint: 'mine', modified_by: foreign, aliases: ['a'], enrichments: {} },
    });
    expect(JSON.stringify(body)).not.to.contain(foreign);
    expect(body).not.to.have.any.keys(
      'unknown',
      'privacy',
      'modified_by',
      'aliases',
      'enrichments',
    );
    expect(body.fingerprint).not.to.equal('mine');
    expect(body.created_at.startsWith('2000')).to.equal(false);
  });

  it('counts a container, and an index, given twice once', async () => {
    const body = await tokens.created({
      ...{ type: 'token', data: 'abc' },
      containers: ['/a/', '/a/'],
      search_indexes: ['{{ data }}', '{{ data }}'],
    });
    expect(body.containers).to.deep.equal(['/a/']);
    expect(body.search_indexes).to.deep.equal(['{{ data }}']);
  });

  it('takes an empty list of containers for the default of the type', async () => {
    const body = await tokens.created({ type: 'bank', data: TYPES[2]?.data, containers: [] });
    expect(body.containers).to.deep.equal(['/bank/high/']);
  });

  it('never answers clear data, even under a reveal rule', async () => {
    const { text } = await tokens.create({ type: 'token', data: 'clear-text-secret' });
    expect(text).not.to.contain('clear-text-secret');
    expect(JSON.parse(text)).not.to.have.property('data');
  });

  it('keeps a token apart from those of the same contents', async () => {
    const first = await tokens.created({ type: 'card_number', data: '4242424242424242' });
    const second = await tokens.created({ type: 'card_number', data: '4242424242424242' });
    expect(second.id).not.to.equal(first.id);
    expect(second.fingerprint).to.equal(first.fingerprint);
    expect(second).not.to.have.property('_extras');
  });

  it('makes fingerprints of one value that differ by type and by tenant', async () => {
    const other = await vault.control.addTenant('Other');
    const key = await vault.clientWith({ permissions: ['token:create'] }, other);
    const data = '4242424242424242';
    const prints = [
      (await tokens.created({ type: 'card_number', data })).fingerprint,
      (await tokens.created({ type: 'token', data })).fingerprint,
      (await key.created({ type: 'card_number', data })).fingerprint,
      (await key.created({ type: 'token', data })).fingerprint,
    ];
    expect(new Set(prints).size).to.equal(4);
  });
});
