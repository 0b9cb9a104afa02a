import { expect } from 'chai';
import { expectProblem, type TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 7, expiration_year: 2031 };

describe('what tokens must not expose', () => {
  let vault: Vault;
  let tokens: TokenClient;
  let masked: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
    masked = await vault.clientWith({ permissions: ['token:read'] });
  });
  after(() => vault.stop());

  const REVEALING: [string, unknown][] = [
    ['all data', '{{ data }}'],
    ['the number', '{{ data.number }}'],
    ['the number in a text', 'n={{ data.number }}.'],
    ['the number by its end', '{{ data.number | reveal_last: 16 }}'],
    ['the number by a longer end', '{{ data.number | reveal_last: 1000000000 }}'],
    ['the number without a mask', "{{ data.number | remove: '-' }}"],
    [
      'the number in two halves',
      ['{{ data.number | slice: 0, 8 }}', '{{ data.number | slice: 8, 8 }}'],
    ],
    ['the number turned around', '{{ data.number | reverse }}'],
    ['the number in base64', '{{ data.number | base64_encode }}'],
    ['the number as JSON', { deep: { a: ['{{ data | stringify }}'] } }],
    ['the number with separators', "{{ data.number | split: '' | join: '-' }}"],
    ['the number as a literal', `fixed ${NUMBER}`],
    ['the number as a key', { [NUMBER]: 'x' }],
  ];
  for (const [what, mask] of REVEALING) {
    it(`of a card are refused when they show ${what}`, async () => {
      expectProblem(await tokens.create({ type: 'card', data: CARD, mask }), 400, 'mask');
      const { id } = await tokens.created({ type: 'card', data: CARD });
      expectProblem(await tokens.patch(id, { mask }), 400, 'mask');
      expect((await masked.read(id)).body.data).to.have.property('number', 'XXXXXXXXXXXX4242');
    });
  }
  it('of a bank never shows the account number', async () => {
    const data = { routing_number: '021000021', account_number: '12345678' };
    for (const mask of ['{{ data.account_number }}', '{{ data }}', 'x12345678x']) {
      expectProblem(await tokens.create({ type: 'bank', data, mask }), 400, 'mask');
    }
    const mask = '{{ data.routing_number }}';
    expect((await tokens.created({ type: 'bank', data, mask })).data).to.equal('021000021');
  });
  it('must not show a card number in clear columns', async () => {
    for (const [member, value] of [
      ['metadata', { note: `card ${NUMBER}` }],
      ['metadata', { [NUMBER]: 'x' }],
      ['search_indexes', [NUMBER]],
      ['search_indexes', [`{{ data.number | append: '${NUMBER}' }}`]],
      ['fingerprint_expression', `{{ data.number }}${NUMBER}`],
      ['id', `order ${NUMBER}`],
    ] as const) {
      const answer = await tokens.create({ type: 'card', data: CARD, [member]: value });
      expectProblem(answer, 400, member);
    }
  });
  it('is refused when a patch of the number brings it about', async () => {
    const other = '5555555555554444';
    const { id } = await tokens.created({ id: `n${other}`, type: 'card', data: CARD });
    expectProblem(await tokens.patch(id, { data: { number: other } }), 400, 'id');
    const noted = { type: 'card', data: CARD, metadata: { note: other } };
    const second = await tokens.created(noted);
    expectProblem(await tokens.patch(second.id, { data: { number: other } }), 400, 'metadata');
    expect((await tokens.read(second.id)).body.data).to.deep.equal(CARD);
  });
  it('leaves no cvc in any evaluated value', async () => {
    const mask = { c: '{{ data.cvc }}', all: '{{ data | json: "$.cvc" }}' };
    const body = await tokens.created({
      ...{ type: 'card', data: { ...CARD, cvc: '987' }, mask },
      fingerprint_expression: 'x{{ data.cvc }}',
    });
    expect(body.data).to.deep.equal({ c: null, all: null });
    const other = await tokens.created({
      ...{ type: 'card', data: { ...CARD, cvc: '123' } },
      fingerprint_expression: 'x{{ data.cvc }}',
    });
    expect(other.fingerprint).to.equal(body.fingerprint);
    const request = { type: 'card', data: { ...CARD, cvc: '987' } };
    const indexed = await tokens.create({ ...request, search_indexes: ['{{ data.cvc }}'] });
    expectProblem(indexed, 400, 'search_indexes.0');
  });
});
