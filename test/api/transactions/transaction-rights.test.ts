/** What a key may do in a transaction, when it writes and when it commits. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { call } from '../../support/http-call.ts';
import { expectProblem, type TokenClient } from '../tokens/token-client.ts';
import { startVault, type Vault } from '../tokens/vault.ts';
import { begin, type TransactionClient } from './transaction-client.ts';

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
    describe('to move a token that was created in the same transaction', () => {
      const [HERE, THERE] = ['/general/here/', '/general/there/'];
      const rules = (here: string[], there: string[]) => ({
        ...{ name: 'Moving', type: 'private' },
        rules: [
          { priority: 1, container: HERE, transform: 'mask', permissions: here },
          { priority: 2, container: THERE, transform: 'mask', permissions: there },
        ],
      });
      const CREATE = ['token:create', 'token:update'];
      const MOVE = ['token:update'];

      /** A new token that was moved to where its application may not create any. */
      async function moved(make: (key: string) => Promise<[TransactionClient, string]>) {
        const { managementKey: key } = vault.control.tenant;
        const application = await call(vault.url, 'POST /applications', {
          ...{ key, json: rules([...CREATE, 'token:delete'], MOVE) },
        });
        const [transaction, id] = await make(String(application.body.key));
        const answer = await transaction.patch(id, { containers: [THERE] });
        expect(answer.status, answer.text).to.equal(200);
        const grant = async (here: string[], there: string[]): Promise<void> => {
          const path = `/applications/${application.body.id}`;
          const put = await call(vault.url, `PUT ${path}`, { key, json: rules(here, there) });
          expect(put.status, put.text).to.equal(200);
        };
        return { transaction, id, grant };
      }

      const created = async (key: string): Promise<[TransactionClient, string]> => {
        const transaction = await begin(vault.url, key);
        const { id } = await transaction.created({ type: 'token', data: 'x', containers: [HERE] });
        return [transaction, id];
      };
      const replaced = async (key: string): Promise<[TransactionClient, string]> => {
        const id = `replaced-${randomUUID()}`;
        await tokens.created({ type: 'token', data: 'x', id, containers: [HERE] });
        const transaction = await begin(vault.url, key);
        expect((await transaction.remove(id)).status).to.equal(204);
        await transaction.created({ type: 'token', data: 'y', id, containers: [HERE] });
        return [transaction, id];
      };

      for (const [how, make] of Object.entries({ created, replaced })) {
        it(`are those of the patch: no right to create there (${how})`, async () => {
          const { transaction, id } = await moved(make);
          const { status, text } = await transaction.commit();
          expect(status, text).to.equal(200);
          expect((await tokens.read(id)).body.containers).to.deep.equal([THERE]);
        });
        it(`that are gone at the commit let nothing be committed (${how})`, async () => {
          const { transaction, id, grant } = await moved(make);
          const WHOLE = [...CREATE, 'token:delete'];
          for (const [here, there] of [
            [MOVE.concat('token:delete'), MOVE],
            [['token:create', 'token:delete'], MOVE],
            [WHOLE, ['token:create']],
          ] as const) {
            await grant([...here], [...there]);
            expectProblem(await transaction.commit(), 403);
          }
          await grant(WHOLE, MOVE);
          expect((await transaction.commit()).status).to.equal(200);
          expect((await tokens.read(id)).body.containers).to.deep.equal([THERE]);
        });
      }
    });
    it('of a deleted application let nothing be committed or rolled back', async () => {
      const { path, transaction } = await application();
      const { managementKey: key } = vault.control.tenant;
      expect((await call(vault.url, `DELETE ${path}`, { key })).status).to.equal(204);
      expectProblem(await transaction.commit(), 401);
      expectProblem(await transaction.rollback(), 401);
    });
  });
});
