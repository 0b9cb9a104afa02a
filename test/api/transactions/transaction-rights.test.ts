/** What a key may do in a transaction, when it writes and when it commits. */
import { expect } from 'chai';
import { call } from '../../support/http-call.ts';
import { expectProblem, type TokenClient } from '../tokens/token-client.ts';
import { startVault, type Vault } from '../tokens/vault.ts';
import { begin } from './transaction-client.ts';

describe('in transactions, by those of the moment,', () => {
  let vault: Vault;
  let tokens: TokenClient;
  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  describe('rights', () => {
    const rule = (permissions: string[]) => ({
      ...{ name: 'Narrow', type: 'private' },
      rules: [
        {
          ...{ description: 'x', priority: 1, container: '/general/', transform: 'mask' },
          permissions: ['token:read', ...permissions],
        },
      ],
    });
    const ALL = ['token:create', 'token:update', 'token:delete'];

    /** An application, its transaction with one change of each kind, and how to change its rules. */
    async function application() {
      const management = vault.control.tenant.managementKey;
      const made = await call(vault.url, 'POST /applications', {
        key: management,
        json: rule(ALL),
      });
      expect(made.status, made.text).to.equal(201);
      const key = String(made.body.key);
      const path = `/applications/${made.body.id}`;
      const grant = async (permissions: string[]): Promise<void> => {
        const put = { key: management, json: rule(permissions) };
        expect((await call(vault.url, `PUT ${path}`, put)).status).to.equal(200);
      };
      const live = [
        await tokens.created({ type: 'token', data: 'x', containers: ['/general/a/'] }),
        await tokens.created({ type: 'token', data: 'x', containers: ['/general/b/'] }),
      ];
      const transaction = await begin(vault.url, key);
      await transaction.created({ type: 'token', data: 'x', containers: ['/general/c/'] });
      expect((await transaction.patch(live[0]?.id ?? '', { data: 'y' })).status).to.equal(200);
      expect((await transaction.remove(live[1]?.id ?? '')).status).to.equal(204);
      return { key, path, grant, transaction, live };
    }

    it('are asked for by each write, as outside', async () => {
      const { transaction } = await application();
      const pci = await tokens.created({ type: 'token', data: 'x', containers: ['/pci/'] });
      expectProblem(await transaction.patch(pci.id, { data: 'y' }), 403);
      expectProblem(await transaction.remove(pci.id), 403);
      const json = { type: 'token', data: 'x', containers: ['/pci/'] };
      expectProblem(await transaction.create(json), 403);
      // What was refused is not held either.
      expect((await tokens.patch(pci.id, { data: 'y' })).status).to.equal(200);
    });
    for (const lost of ALL) {
      it(`that are gone at the commit, here ${lost}, let nothing be committed`, async () => {
        const { grant, transaction, live } = await application();
        await grant(ALL.filter((permission) => permission !== lost));
        expectProblem(await transaction.commit(), 403);
        for (const { id } of live) expect((await tokens.read(id)).body.data).to.equal('x');
        await grant(ALL);
        expect((await transaction.commit()).status).to.equal(200);
      });
    }
    it('of a deleted application let nothing be committed or rolled back', async () => {
      const { path, transaction } = await application();
      const { managementKey: key } = vault.control.tenant;
      expect((await call(vault.url, `DELETE ${path}`, { key })).status).to.equal(204);
      expectProblem(await transaction.commit(), 401);
      expectProblem(await transaction.rollback(), 401);
    });
  });
});
