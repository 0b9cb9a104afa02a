/**
 * The record of a create names the token for as long as that is as it was created, and holds the answer
 * from then on; of a large token, from the beginning. Whatever became of the token, a replay is the first answer, byte for byte.
 */
import { expect } from 'chai';
import type { TokenClient } from '../tokens/token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from '../tokens/vault.ts';
import { CHANGES, type Changing, CREATIONS, PATCHES, ROLLED_BACK } from './creations.ts';
import { expectReplay, keyedCreate, newKey } from './keyed.ts';

const NOTHING_SHOWN = REVEAL_ALL.map((rule) => ({ ...rule, transform: 'redact' as const }));

describe('the answer to a create with an idempotency key', () => {
  let vault: Vault;
  let changing: Changing;
  const creators = new Map<string, TokenClient>();
  before(async () => {
    vault = await startVault();
    changing = { url: vault.url, key: vault.key, by: vault.tokens };
    creators.set('in clear', vault.tokens);
    creators.set('nothing', await vault.clientWith({ rules: NOTHING_SHOWN }));
  });
  after(() => vault?.stop());

  const namedBy = async (tokenId: string) => {
    const text = 'SELECT 1 FROM idempotency_records WHERE token_id = $1';
    return (await vault.control.pool.query(text, [tokenId])).rowCount;
  };

  for (const [what, creation] of CREATIONS) {
    for (const shown of ['in clear', 'nothing']) {
      it(`of a ${what} is replayed after each change, to a key that is shown ${shown}`, async () => {
        const by = creators.get(shown) as TokenClient;
        for (const [how, change] of [...CHANGES, ...ROLLED_BACK]) {
          const key = newKey();
          const made = creation();
          const first = await keyedCreate(by, key, made.json);
          expect(first.status, first.text.slice(0, 500)).to.equal(201);
          expectReplay(await keyedCreate(by, key, made.json), first);
          const atFirst = what.startsWith('large token') ? 0 : 1;
          expect(await namedBy(first.body.id), 'at first').to.equal(atFirst);
          await change(first.body, made, changing);
          expectReplay(await keyedCreate(by, key, made.json), first);
          const isChanged = ROLLED_BACK.every(([name]) => name !== how);
          expect(await namedBy(first.body.id), how).to.equal(isChanged ? 0 : atFirst);
        }
      });
    }
  }

  it('is replayed after several changes, one after the other', async () => {
    for (const [, creation] of CREATIONS) {
      const key = newKey();
      const made = creation();
      const first = await keyedCreate(vault.tokens, key, made.json);
      for (const [, patch] of PATCHES) {
        const patched = await vault.tokens.patch(first.body.id, patch(made));
        expect(patched.status, patched.text).to.equal(200);
        expectReplay(await keyedCreate(vault.tokens, key, made.json), first);
      }
      expect((await vault.tokens.remove(first.body.id)).status).to.equal(204);
      expectReplay(await keyedCreate(vault.tokens, key, made.json), first);
    }
  });

  it('is replayed when a patch was refused, and when it changed nothing', async () => {
    const [key, other] = [newKey(), newKey()];
    const json = { type: 'token', data: newKey() };
    const first = await keyedCreate(vault.tokens, key, json);
    const second = await keyedCreate(vault.tokens, other, { type: 'token', data: newKey() });
    const { id } = first.body;
    expect((await vault.tokens.patch(id, { expires_at: '2001-01-01' })).status).to.equal(400);
    expect(await namedBy(id)).to.equal(1);
    const duplicate = { data: json.data, deduplicate_token: true };
    const found = await vault.tokens.patch(second.body.id, duplicate);
    expect(found.body.id, found.text).to.equal(id);
    expect(await namedBy(second.body.id)).to.equal(1);
    expectReplay(await keyedCreate(vault.tokens, key, json), first);
    expectReplay(await keyedCreate(vault.tokens, other, json), second);
  });
});
