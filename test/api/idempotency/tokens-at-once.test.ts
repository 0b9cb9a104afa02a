/** Twins of a request that arrive at once: one takes effect, the others hear of it or of its running. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { inParallel } from '../../support/in-parallel.ts';
import type { TokenClient } from '../tokens/token-client.ts';
import { startVault, type Vault } from '../tokens/vault.ts';
import { keyed, keyedCreate, keyedPatch, newKey } from './keyed.ts';

describe('writes of tokens with one idempotency key, sent 100 times at once', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault?.stop());

  const create = (key: string, json: unknown) => keyedCreate(tokens, key, json);
  const patch = (key: string, id: string, json: unknown) => keyedPatch(tokens, key, id, json);
  const total = async () => (await tokens.list('?size=0')).body.pagination.total_items;

  const statusesOf = async (send: () => Promise<{ status: number; text: string }>) => {
    const answers = await Promise.all(Array.from({ length: 100 }, send));
    const fine = answers.filter(({ status }) => status < 300);
    expect(fine.length).to.be.at.least(1);
    expect(new Set(fine.map(({ text }) => text)).size).to.equal(1);
    for (const { status, text } of answers) {
      if (status >= 300) expect([status, text]).to.satisfy(isInProgress);
    }
  };
  const isInProgress = ([status, text]: [number, string]) =>
    status === 409 && text.includes('in progress');

  it('create one token', async () => {
    const before = await total();
    const key = newKey();
    await statusesOf(() => create(key, { type: 'token', data: randomUUID() }));
    expect(await total()).to.equal(before + 1);
  });
  it('create one token, also with an id that the first takes from the others', async () => {
    const before = await total();
    const key = newKey();
    const id = `id-${randomUUID()}`;
    await statusesOf(() => create(key, { type: 'token', data: 'x', id }));
    expect(await total()).to.equal(before + 1);
  });
  it('create one token among many others', async () => {
    const before = await total();
    const key = newKey();
    const others = inParallel(Array.from({ length: 200 }), async (_, index) => {
      const json = { type: 'token', data: 'other' };
      const answer = index % 2 === 0 ? await tokens.create(json) : await create(newKey(), json);
      expect(answer.status).to.equal(201);
    });
    await statusesOf(() => create(key, { type: 'token', data: 'x' }));
    await others;
    expect(await total()).to.equal(before + 201);
  });
  it('patch once', async () => {
    const { id } = await tokens.created({ type: 'token', data: 'x' });
    const key = newKey();
    await statusesOf(() => patch(key, id, { metadata: { at: 'once' } }));
  });
  it('tokenize once', async () => {
    const before = await total();
    const key = newKey();
    await statusesOf(() => tokens.send('POST /tokenize', keyed(key, { json: ['a', 'b'] })));
    expect(await total()).to.equal(before + 2);
  });
});
