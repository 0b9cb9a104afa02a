import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { JsonObject } from '../../support/http-call.ts';
import type { TokenBody, TokenClient } from './token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from './vault.ts';

describe('POST /tokenize with deduplication', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  const tokenized = <T>(json: unknown, client = tokens) => client.tokenized<T>(json);
  const total = async (): Promise<number> =>
    (await tokens.list('?size=0')).body.pagination.total_items;
  const asks = (data: unknown): JsonObject => ({ type: 'token', data, deduplicate_token: true });

  it('finds tokens that exist, and earlier ones of the same request', async () => {
    const [old, fresh] = [randomUUID(), randomUUID()];
    const known = await tokens.created({ type: 'token', data: old, metadata: { a: 'b' } });
    const before = await total();
    const made = await tokenized<TokenBody[]>([asks(old), asks(fresh), asks(fresh), asks(old)]);
    expect(made.map(({ _extras }) => _extras?.deduplicated)).to.deep.equal([
      ...[true, false, true, true],
    ]);
    expect(made.map(({ id }) => id === known.id)).to.deep.equal([true, false, false, true]);
    expect(made[0]).to.deep.equal({ ...known, _extras: { deduplicated: true } });
    expect(made[2]?.id).to.equal(made[1]?.id);
    expect(await total()).to.equal(before + 1);
    expect((await tokens.created(asks(fresh))).id).to.equal(made[1]?.id);
  });
  it('finds one that the same request stored without asking for it', async () => {
    const data = randomUUID();
    const [plain, asking] = await tokenized<TokenBody[]>([{ type: 'token', data }, asks(data)]);
    expect(asking?.id).to.equal(plain?.id);
  });
  it('answers when all of a request exists already', async () => {
    const data = randomUUID();
    const { id } = await tokens.created({ type: 'token', data });
    const [again] = await tokenized<TokenBody[]>([asks(data)]);
    expect(again?.id).to.equal(id);
  });
  it('hides a token that the key may not read', async () => {
    const data = randomUUID();
    await tokens.created({ type: 'token', data, metadata: { a: 'b' }, mask: 'm' });
    const creator = await vault.clientWith({ permissions: ['token:create'] });
    const [made] = await tokenized<TokenBody[]>([asks(data)], creator);
    expect(made).to.have.all.keys(
      ...['id', 'tenant_id', 'type', 'fingerprint', 'containers', '_extras'],
    );
  });
  it('stores one token for the same contents in parallel requests', async () => {
    const contents = Array.from({ length: 5 }, () => randomUUID());
    const before = await total();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, round) => {
        const wanted = round % 2 === 0 ? contents : contents.toReversed();
        return tokenized<TokenBody[]>(wanted.map(asks));
      }),
    );
    expect(new Set(answers.flat().map(({ id }) => id)).size).to.equal(contents.length);
    expect(await total()).to.equal(before + contents.length);
  });
  it('obeys the tenant where the request says nothing, for values too', async () => {
    const tenant = await vault.control.addTenant('Deduplicating');
    const client = await vault.clientWith({ rules: REVEAL_ALL }, tenant);
    const changed = await vault.tokens.send('PUT /tenants/self', {
      key: tenant.managementKey,
      json: { name: 'x', settings: { deduplicate_tokens: 'true' } },
    });
    expect(changed.status).to.equal(200);
    const made = await tokenized<string[]>(['x', 'y', 'x'], client);
    expect(made[2]).to.equal(made[0]);
    expect(made[1]).not.to.equal(made[0]);
  });
});
