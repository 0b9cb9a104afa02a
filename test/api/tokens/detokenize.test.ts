import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { AccessRule, Transform } from '../../../shared/access/access-rules.ts';

import type { Answer, JsonObject } from '../../support/http-call.ts';
import { expectProblem, type TokenBody, type TokenClient } from './token-client.ts';
import { HOUR_S, REVEAL_ALL, startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const CARD = { number: NUMBER, expiration_month: 11, expiration_year: 2030 };
const MASKED = { ...CARD, number: 'XXXXXXXXXXXX4242' };

describe('POST /detokenize', () => {
  let vault: Vault;
  let tokens: TokenClient;
  let card: TokenBody;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
    card = await tokens.created({ type: 'card', data: CARD, metadata: { name: 'Ann' } });
  });
  after(() => vault.stop());

  const detokenize = <T = JsonObject>(json: unknown, client = tokens): Promise<Answer<T>> =>
    client.send<T>('POST /detokenize', { json });

  async function detokenized(json: unknown, client = tokens): Promise<unknown> {
    const answer = await detokenize<unknown>(json, client);
    expect(answer.status, answer.text.slice(0, 500)).to.equal(200);
    return answer.body;
  }

  const plain = async (data: unknown, over: JsonObject = {}): Promise<string> =>
    (await tokens.created({ type: 'token', data, ...over })).id;

  it('replaces expressions by data, with its type', async () => {
    const name = await plain('Ann');
    const body = {
      tokens: [`{{ ${card.id} }}`, `{{${name}}}`],
      number: `{{ ${card.id} | json: '$.number' }}`,
      month: `{{ ${card.id} | json: '$.expiration_month' }}`,
      label: `card {{ ${card.id} | json: '$.number' | last4 }} of {{ ${name} }}`,
      kept: { text: 'x', number: 1.5, nothing: null },
    };
    expect(await detokenized(body)).to.deep.equal({
      tokens: [CARD, 'Ann'],
      number: NUMBER,
      month: 11,
      label: 'card 4242 of Ann',
      kept: { text: 'x', number: 1.5, nothing: null },
    });
  });
  it('shows the whole token as a read does', async () => {
    const { body } = await tokens.read(card.id);
    expect(await detokenized(`{{ token: ${card.id} }}`)).to.deep.equal(body);
    const name = `{{ token: ${card.id} | json: '$.metadata.name' }}`;
    expect(await detokenized([name])).to.deep.equal(['Ann']);
  });
  it('takes any JSON, with and without expressions', async () => {
    expect(await detokenized(`{{ ${card.id} }}`)).to.deep.equal(CARD);
    for (const body of ['text', 1, null, true, [], {}, { a: [null] }]) {
      expect(await detokenized(body)).to.deep.equal(body);
    }
  });
  it('keeps numbers exactly', async () => {
    const text = '[-0,1e-7,9007199254740991]';
    const { id } = (await tokens.createText(`{"type":"token","data":${text}}`)).body;
    const answer = await detokenize([`{{ ${id} }}`, 1e21]);
    expect(answer.text).to.equal(`[${text},1e+21]`);
  });
  it('finds tokens by aliases, also such that look like something else', async () => {
    for (const id of ['4000 0000 1234', 'data.number', 'ann@example.com', 'true', '-dash-']) {
      await plain(`data of ${id}`, { id });
      expect(await detokenized({ a: `{{ ${id} }}`, b: `{{ ${id} | upcase }}` })).to.deep.equal({
        a: `data of ${id}`,
        b: `DATA OF ${id.toUpperCase()}`,
      });
    }
  });

  // Attacks 74 and 75.
  it('never reads data as an expression, nor names of members', async () => {
    const inner = await plain('inner-secret');
    const outer = await plain({ a: `{{ ${inner} }}`, [`{{ ${inner} }}`]: 1 });
    const answer = await detokenize({ [`{{ ${inner} }}`]: `{{ ${outer} }}` });
    expect(answer.status).to.equal(200);
    expect(answer.text).not.to.contain('inner-secret');
  });

  // Attacks 66, 68, 70.
  const malformed = [
    '{{',
    '}}',
    '{{ }}',
    '{{{{x}}}}',
    '{{ abc }} {{ def',
    '{% raw %}',
    '{{ a/b }}',
  ];
  for (const text of malformed) {
    it(`refuses ${text} and names where it is`, async () => {
      const answer = await detokenize({ a: ['ok', { b_1: text }], [`x${NUMBER}`]: 1 });
      expectProblem(answer, 400, 'a.1.b_1');
      expectProblem(await detokenize({ [NUMBER]: text }), 400, '*');
      expectProblem(await detokenize(text), 400, 'body');
    });
  }
  it('refuses what a filter cannot do, without showing the data', async () => {
    const filters = ['nothing', 'to_number', "json: '$..*'", 'reveal_last: -1', 'upcase: 1'];
    for (const filter of filters) {
      const answer = await detokenize({ a: `{{ ${card.id} | ${filter} }}` });
      expectProblem(answer, 400, 'a');
    }
  });

  describe('tokens that cannot be used', () => {
    it('are named with 400 when they do not exist, all at once', async () => {
      const expires_at = new Date(Date.now() + 60_000);
      const expiring = await plain('x', { id: 'expiring-id', expires_at });
      const later = await vault.later(120);
      const body = [`{{ ${expiring} }}`, `{{ no-such-1 }}`, `{{ ${card.id} }}`, '{{ no-such-2 }}'];
      const answer = await detokenize(body, later);
      expectProblem(answer, 400);
      const { detail } = answer.body;
      const missing = `${expiring}, no-such-1, no-such-2`;
      expect(detail).to.equal(`Failed to detokenize some tokens: ${missing}`);
    });
    it('are named with what a path would be, where one may have been meant', async () => {
      const hint = '; a member is taken by a filter: {{ <token id> | json: "$.number" }}';
      for (const id of [`${card.id}.number`, 'no.such.member']) {
        const answer = await detokenize(['{{ no-such }}', `{{ ${id} }}`, '{{ none }}']);
        expectProblem(answer, 400);
        const named = `Failed to detokenize some tokens: no-such, ${id}, none`;
        expect(answer.body.detail).to.equal(`${named}${hint}`);
      }
      // A dot in the id of a token that is there says nothing of the others.
      const dotted = await plain('x', { id: 'dotted.id' });
      const answer = await detokenize([`{{ ${dotted} }}`, '{{ no-such }}']);
      expect(answer.body.detail).to.equal('Failed to detokenize some tokens: no-such');
    });
    it('do not exist in other tenants', async () => {
      const tenant = await vault.control.addTenant('Other');
      const other = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
      expectProblem(await detokenize([`{{ ${card.id} }}`], other), 400);
    });
    it('are named with 403 when the key may not read them', async () => {
      const rules: AccessRule[] = [
        { priority: 1, container: '/pci/', transform: 'reveal', permissions: ['token:read'] },
      ];
      const reader = await vault.clientWith({ rules });
      const secret = await plain('other-secret', { id: 'some-other-id' });
      const known = await tokens.created({ type: 'card', data: CARD, id: 'some-card' });
      expect(await detokenized([`{{ ${known.id} }}`], reader)).to.deep.equal([CARD]);
      const answer = await detokenize([`{{ ${known.id} }}`, `{{ ${secret} | size }}`], reader);
      expectProblem(answer, 403);
      expect(answer.body.detail).to.contain(secret).and.not.contain(known.id);
      expect(answer.text).not.to.contain('other-secret');
    });
  });

  describe('what the key may see', () => {
    const reader = (transform: Transform) =>
      vault.clientWith({
        rules: [{ priority: 1, container: '/', transform, permissions: ['token:read'] }],
      });
    it('needs token:read, with and without expressions', async () => {
      const user = await vault.clientWith({ permissions: ['token:use', 'token:create'] });
      expectProblem(await detokenize([`{{ ${card.id} }}`], user), 403);
      expectProblem(await detokenize([], user), 403);
    });
    it('is the mask under mask, also to filters', async () => {
      for (const client of [
        await reader('mask'),
        await vault.clientWith({ permissions: ['token:read'] }),
      ]) {
        const body = {
          data: `{{ ${card.id} }}`,
          number: `{{ ${card.id} | json: '$.number' }}`,
          hex: `{{ ${card.id} | stringify | downcase }}`,
          whole: `{{ token: ${card.id} | json: '$.data.number' }}`,
        };
        const answer = await detokenize(body, client);
        expect(answer.body).to.deep.equal({
          data: MASKED,
          number: MASKED.number,
          hex: JSON.stringify(MASKED).toLowerCase(),
          whole: MASKED.number,
        });
      }
    });
    it('is nothing without a mask, and under redact', async () => {
      const secret = await plain('hidden-secret', { metadata: { a: 'b' } });
      const body = [
        `{{ ${secret} }}`,
        `a{{ ${secret} }}b`,
        `{{ ${secret} | size }}`,
        `{{ token: ${secret} | json: '$.data' }}`,
        `{{ token: ${secret} | json: '$.metadata.a' }}`,
      ];
      for (const transform of ['mask', 'redact'] as const) {
        const answer = await detokenize(body, await reader(transform));
        expect(answer.body, transform).to.deep.equal([null, 'ab', 0, null, 'b']);
      }
    });
    it('has a cvc only where it is revealed, and only for its hour', async () => {
      const { id } = await tokens.created({ type: 'card', data: { ...CARD, cvc: '987' } });
      const body = [`{{ ${id} | json: '$.cvc' }}`];
      expect(await detokenized(body)).to.deep.equal(['987']);
      expect(await detokenized(body, await reader('mask'))).to.deep.equal([null]);
      expect(await detokenized(body, await vault.later(HOUR_S + 60))).to.deep.equal([null]);
    });
  });

  // Attack 77.
  describe('limits', () => {
    it('takes 100 different tokens, as often as one likes, and no more', async () => {
      const values = Array.from({ length: 100 }, (_, index) => `value ${index}`);
      const ids = (await tokens.send<string[]>('POST /tokenize', { json: values })).body;
      const body = ids.map((id) => `{{ ${id} }}`);
      expect(await detokenized([body, body])).to.deep.equal([values, values]);
      expectProblem(await detokenize([...body, `{{ ${card.id} }}`]), 400, 'body');
      expectProblem(await detokenize([...body, `{{ ${randomUUID()} }}`]), 400, 'body');
    });
    it('bounds what is injected', async () => {
      const id = await plain('x'.repeat(1000 * 1000));
      const uses = (count: number) => Array.from({ length: count }, () => `{{ ${id} }}`);
      expect(await detokenized(uses(5))).to.have.length(5);
      expectProblem(await detokenize(uses(6)), 400, '5');
      expectProblem(await detokenize({ a: uses(6).join('') }), 400, 'a');
    });
    it('bounds what has to be opened', async () => {
      const ids: string[] = [];
      for (let made = 0; made < 20; made += 1) ids.push(await plain('x'.repeat(1000 * 1000)));
      const sizes = (all: string[]) => all.map((id) => `{{ ${id} | size }}`);
      expect(await detokenized(sizes(ids))).to.deep.equal(ids.map(() => 1000 * 1000));
      const larger = [...ids, await plain('x'.repeat(1000 * 1000))];
      expectProblem(await detokenize(sizes(larger)), 400);
    });
    it('takes bodies of 5 MiB, JSON alone', async () => {
      const big = [`{{ ${card.id} }}`, 'x'.repeat(5 * 1024 * 1024 - 100)];
      expect(((await detokenized(big)) as unknown[])[0]).to.deep.equal(CARD);
      expectProblem(await detokenize(['x'.repeat(5 * 1024 * 1024)]), 413);
      const text = { body: 'x', headers: { 'content-type': 'text/plain' } };
      expectProblem(await tokens.send('POST /detokenize', text), 415);
      const empty = { body: '', headers: { 'content-type': 'application/json' } };
      expectProblem(await tokens.send('POST /detokenize', empty), 400);
    });
  });
});
