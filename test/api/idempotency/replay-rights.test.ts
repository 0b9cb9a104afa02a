/** A replay is shown to those alone who might see it now. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { call } from '../../support/http-call.ts';
import { expectProblem, type TokenBody } from '../tokens/token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from '../tokens/vault.ts';
import { expectReplay, keyed, newKey } from './keyed.ts';

describe('kept answers of writes are shown again to nobody who might not see them now:', () => {
  let vault: Vault;

  before(async () => {
    vault = await startVault();
  });
  after(() => vault?.stop());

  const manage = (line: string, json?: unknown) =>
    call(vault.url, line, { key: vault.control.tenant.managementKey, json });
  const RULES = REVEAL_ALL;
  const application = async (rules = RULES) => {
    const json = { name: 'Keyed', type: 'private', rules };
    const made = await manage('POST /applications', json);
    const id = String(made.body.id);
    const send = (key: string) =>
      call<TokenBody>(vault.url, 'POST /tokens', {
        ...keyed(key, { json: { type: 'token', data: 'x', mask: 'shown', containers: ['/a/'] } }),
        key: String(made.body.key),
      });
    const become = async (changed: unknown[]) => {
      const put = { name: 'Keyed', rules: changed };
      expect((await manage(`PUT /applications/${id}`, put)).status).to.equal(200);
    };
    return { id, send, become };
  };

  it('not to a deleted application', async () => {
    const { id, send } = await application();
    const key = newKey();
    expect((await send(key)).status).to.equal(201);
    expect((await manage(`DELETE /applications/${id}`)).status).to.equal(204);
    expect((await send(key)).status).to.equal(401);
  });
  it('not without the permission, nor without it in that container', async () => {
    const { send, become } = await application();
    const key = newKey();
    const first = await send(key);
    await become([{ ...RULES[0], permissions: ['token:read'] }]);
    expectProblem(await send(key), 403);
    await become([{ ...RULES[0], container: '/b/' }]);
    expectProblem(await send(key), 403);
    await become(RULES);
    expectReplay(await send(key), first);
  });
  it('not as openly as it was shown', async () => {
    const { send, become } = await application();
    const key = newKey();
    const first = await send(key);
    expect(first.text).to.contain('shown');
    await become([{ ...RULES[0], transform: 'redact' }]);
    const redacted = await send(key);
    expectProblem(redacted, 403);
    expect(redacted.text).not.to.contain('shown');
    await become([{ ...RULES[0], transform: 'mask' }]);
    expectReplay(await send(key), first);
  });
  it('not another token that it duplicated, once that cannot be read', async () => {
    const { send, become, id } = await application();
    expect((await send(newKey())).status).to.equal(201);
    const data = `data ${randomUUID()}`;
    const open = { type: 'token', data, mask: 'secret mask', containers: ['/b/'] };
    await vault.tokens.created(open);
    const regenerated = await manage(`POST /applications/${id}/regenerate`);
    const json = { ...open, containers: ['/a/'], deduplicate_token: true };
    const key = newKey();
    const duplicate = () =>
      call(vault.url, 'POST /tokens', {
        ...keyed(key, { json }),
        key: String(regenerated.body.key),
      });
    const first = await duplicate();
    expect(first.text).to.contain('secret mask');
    expectReplay(await duplicate(), first);
    await become([{ ...RULES[0], container: '/a/' }]);
    expectProblem(await duplicate(), 403);
  });
});
