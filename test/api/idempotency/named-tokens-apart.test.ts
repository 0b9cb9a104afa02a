/**
 * Records that name a token, where something else could come between: a key that is used anew after its
 * day, a right that was lost, time that goes by, rows that somebody has changed.
 */
import { expect } from 'chai';
import { createLogger } from '../../../shared/observability/logger.ts';
import { createPool, type Pool } from '../../../shared/postgres/pool.ts';
import { sweepExpiredTokens } from '../../../shared/tokens/sweep-tokens.ts';
import { call } from '../../support/http-call.ts';
import { expectProblem, type TokenBody, type TokenClient } from '../tokens/token-client.ts';
import { HOUR_S, REVEAL_ALL, startVault, type Vault } from '../tokens/vault.ts';
import { begin } from '../transactions/transaction-client.ts';
import { expectReplay, keyed, keyedCreate, newKey } from './keyed.ts';

const DAY_S = 24 * HOUR_S;
const JSON_OF = (data: string) => ({ type: 'token', data, mask: `mask of ${data}` });

describe('a record that names its token', () => {
  let vault: Vault;
  let tokens: TokenClient;
  let pool: Pool;
  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
    pool = vault.control.pool;
  });
  after(() => vault?.stop());

  const total = async () => (await tokens.list('?size=0')).body.pagination.total_items;
  const namedOf = async (tokenId: string) =>
    (await pool.query('SELECT 1 FROM idempotency_records WHERE token_id = $1', [tokenId])).rowCount;
  const create = (key: string, by = tokens) => keyedCreate(by, key, JSON_OF('one'));

  describe('of a key that is new again after a day', () => {
    const WAYS: [string, (by: TokenClient, id: string) => Promise<{ status: number }>][] = [
      ['patched', (by, id) => by.patch(id, { metadata: { of: 'old' } })],
      ['deleted', (by, id) => by.remove(id)],
      [
        'patched by a transaction',
        async (_, id) => {
          const transaction = await begin(vault.url, vault.key);
          await transaction.patch(id, { metadata: { of: 'old' } });
          return transaction.commit();
        },
      ],
    ];
    for (const [how, change] of WAYS) {
      it(`is another one: it does not notice that the old token is ${how}`, async () => {
        const key = newKey();
        const old = await create(key);
        const later = await vault.later(DAY_S + 1);
        const made = await create(key, later);
        expect(made.body.id).not.to.equal(old.body.id);
        expect((await change(tokens, old.body.id)).status).to.be.within(200, 204);
        expect(await namedOf(made.body.id)).to.equal(1);
        expectReplay(await create(key, later), made);
        expect((await later.patch(made.body.id, { data: 'two' })).status).to.equal(200);
        expect(await namedOf(made.body.id)).to.equal(0);
        expectReplay(await create(key, later), made);
      });
    }
    it('is another one, also when its token has the id of the old one', async () => {
      const key = newKey();
      const later = await vault.later(DAY_S + 1);
      const json = { ...JSON_OF('one'), id: newKey() };
      const old = await keyedCreate(tokens, key, json);
      expectProblem(await keyedCreate(later, key, json), 409);
      expect((await later.remove(old.body.id)).status).to.equal(204);
      const made = await keyedCreate(later, key, json);
      expect(made.status, made.text).to.equal(201);
      expect(made.body.created_at).not.to.equal(old.body.created_at);
      expectReplay(await keyedCreate(later, key, json), made);
    });
  });

  it('asks for the same rights before its token was changed and after', async () => {
    const manage = (line: string, json: unknown) =>
      call(vault.url, line, { key: vault.control.tenant.managementKey, json });
    const rules = [{ ...REVEAL_ALL[0], transform: 'mask' }];
    const made = await manage('POST /applications', { name: 'Keyed', type: 'private', rules });
    const become = async (over: object) => {
      const put = { name: 'Keyed', rules: [{ ...rules[0], ...over }] };
      expect((await manage(`PUT /applications/${made.body.id}`, put)).status).to.equal(200);
    };
    const [key, json] = [newKey(), { ...JSON_OF('one'), containers: ['/a/'] }];
    const send = () =>
      call<TokenBody>(vault.url, 'POST /tokens', {
        ...keyed(key, { json }),
        key: String(made.body.key),
      });
    const first = await send();
    const changes = [
      async () => undefined,
      () => tokens.patch(first.body.id, { containers: ['/b/'] }),
      () => tokens.remove(first.body.id),
    ];
    for (const change of changes) {
      await change();
      const less = [{ container: '/b/' }, { transform: 'redact' }, { permissions: ['token:read'] }];
      for (const over of less) {
        await become(over);
        const refused = await send();
        expectProblem(refused, 403);
        expect(refused.text).not.to.contain('mask of');
      }
      await become({});
      expectReplay(await send(), first);
    }
  });

  it('never has one that goes by the clock', async () => {
    const expires_at = new Date(Date.now() + (HOUR_S / 2) * 1_000).toISOString();
    const born = newKey();
    const patched = newKey();
    const committed = newKey();
    const expiring = { ...JSON_OF('one'), expires_at };
    const first = [await keyedCreate(tokens, born, expiring)];
    for (const key of [patched, committed]) first.push(await create(key));
    const ids = first.map(({ body }) => body.id);
    expect((await tokens.patch(ids[1] ?? '', { expires_at })).status).to.equal(200);
    const transaction = await begin(vault.url, vault.key);
    expect((await transaction.patch(ids[2] ?? '', { expires_at })).status).to.equal(200);
    expect((await transaction.commit()).status).to.equal(200);
    for (const id of ids) expect(await namedOf(id), id).to.equal(0);

    const later = await vault.later(HOUR_S);
    const swept = createPool({
      ...{ connectionString: vault.control.database.connectionString, max: 1 },
      ...{ applicationName: 'test', clockOffsetSeconds: HOUR_S },
      log: createLogger('test', 'silent'),
    });
    for (const how of ['expired', 'swept']) {
      if (how === 'swept') expect(await sweepExpiredTokens(swept, 100)).to.equal(3);
      for (const [index, key] of [born, patched, committed].entries()) {
        const again = await create(key, later);
        expectReplay(again, first[index] as typeof again);
      }
    }
    await swept.end();
  });
  it('has none that the database would let expire', async () => {
    const { body } = await create(newKey());
    const expire = pool.query('UPDATE tokens SET expires_at = clock_now() WHERE id = $1', [
      body.id,
    ]);
    const refusal = await expire.catch((error: { constraint?: string }) => error.constraint);
    expect(refusal).to.equal('tokens_named_stay');
  });

  describe('is refused, with no second effect, when somebody', () => {
    const point = (from: string, to: string) =>
      pool.query('UPDATE idempotency_records SET token_id = $2 WHERE token_id = $1', [from, to]);
    const takeScope = (to: string, from: string) =>
      pool.query(
        `UPDATE tokens SET record_scope = (SELECT o.record_scope FROM tokens o WHERE o.id = $2)
         WHERE id = $1`,
        [to, from],
      );
    /** Given its token, another one of the application's, and one of another application's. */
    type Tamper = (own: string, second: string, other: string) => Promise<unknown>;
    const WAYS: [string, Tamper][] = [
      ['made it name another token', (own, second) => point(own, second)],
      ['made it name no token', (own) => point(own, 'nothing')],
      ['deleted the token', (own) => pool.query('DELETE FROM tokens WHERE id = $1', [own])],
      [
        'made it name a token of another application, and that take its part',
        async (own, _, other) => {
          await takeScope(other, own);
          await point(own, other);
        },
      ],
      [
        'changed the token',
        (own) => pool.query(`UPDATE tokens SET container = '/b/' WHERE id = $1`, [own]),
      ],
    ];
    for (const [how, tamper] of WAYS) {
      it(how, async () => {
        const [key, sound] = [newKey(), newKey()];
        const own = await create(key);
        const fine = await create(sound);
        const stranger = await vault.clientWith({ rules: REVEAL_ALL });
        const other = await keyedCreate(stranger, newKey(), JSON_OF('strange'));
        const second = await create(newKey());
        await tamper(own.body.id, second.body.id, other.body.id);
        const before = await total();
        for (let n = 0; n < 3; n += 1) {
          const [again, neighbour] = await Promise.all([create(key), create(sound)]);
          expectProblem(again, 500);
          expect(again.text).not.to.contain('mask of');
          expectReplay(neighbour, fine);
        }
        expect(await total()).to.equal(before);
      });
    }
    it('broke the token, which can still be deleted', async () => {
      const key = newKey();
      const { body } = await create(key);
      await pool.query(`UPDATE tokens SET sealed = sealed || 'x' WHERE id = $1`, [body.id]);
      expectProblem(await create(key), 500);
      expect((await tokens.remove(body.id)).status).to.equal(204);
      const before = await total();
      expectProblem(await create(key), 500);
      expect(await total()).to.equal(before);
    });
  });
});
