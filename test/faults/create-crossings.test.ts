/**
 * Requests that want ids of one tenant at once, so that each comes upon what another one holds: somebody
 * gets each id, the others a 409, and nobody else is any the worse for it.
 */
import { expect } from 'chai';
import pg from 'pg';
import { type TokenClient, tokenClient } from '../api/tokens/token-client.ts';
import { REVEAL_ALL, startVault, type Vault } from '../api/tokens/vault.ts';
import { begin } from '../api/transactions/transaction-client.ts';
import type { Answer } from '../support/http-call.ts';

const ROUNDS = 5;
const LATER_S = 120;

describe('requests that cross each other', function () {
  this.timeout(60_000);
  let vault: Vault;
  let holder: pg.Client;
  before(async () => {
    vault = await startVault();
    holder = new pg.Client({ connectionString: vault.control.database.adminConnectionString });
    await holder.connect();
  });
  after(async () => {
    await holder?.end();
    await vault?.stop();
  });

  const statuses = (answers: Answer<unknown>[]): number[] => answers.map(({ status }) => status);
  const named = (ids: readonly string[]) => ids.map((id) => ({ id, type: 'token', data: id }));
  const idsOf = (name: string, length: number): string[] =>
    Array.from({ length }, (_, index) => `${name}-${index + 100}`);

  /** Tokens that are there, but whose time is over where it is later. */
  async function expired(ids: readonly string[]): Promise<void> {
    const expires_at = new Date(Date.now() + (LATER_S - 10) * 1_000).toISOString();
    for (const token of named(ids)) await vault.tokens.created({ ...token, expires_at });
  }

  /** Returns when as many wait for locks. */
  async function waiting(count: number): Promise<void> {
    const waiters = 'SELECT FROM pg_locks WHERE NOT granted';
    while (((await vault.control.pool.query(waiters)).rowCount ?? 0) < count);
  }

  /** Begins one after the other, each waiting by then; somebody has these ids meanwhile. */
  async function crossing(
    held: readonly (string | undefined)[],
    begin: readonly (() => Promise<Answer<unknown>>)[],
  ): Promise<number[]> {
    await holder.query('BEGIN');
    await holder.query('SELECT 1 FROM tokens WHERE id = ANY ($1) FOR UPDATE', [held]);
    const answers: Promise<Answer<unknown>>[] = [];
    for (const one of begin) {
      answers.push(one());
      await waiting(answers.length);
    }
    await holder.query('ROLLBACK');
    return statuses(await Promise.all(answers));
  }

  const ORDERS = [
    ['upwards', (ids: string[]) => ids],
    ['downwards', (ids: string[]) => ids.toReversed()],
  ] as const;

  for (const [name, ordered] of ORDERS) {
    it(`over expired ids, ${name} first: one gets them all, the other none`, async () => {
      const later = await vault.later(LATER_S);
      const ids = idsOf(`expired-${name}`, 3);
      await expired(ids);
      const orders = [ordered(ids), ordered(ids.toReversed())];
      // Both have found all three taken by then, and are about to free them.
      const answered = await crossing(
        [ids[0], ids[2]],
        orders.map((order) => () => later.tokenize(named(order))),
      );
      expect(answered).to.deep.equal([200, 409]);
    });

    it(`over expired ids, made ${name}, that a commit creates anew: it alone does`, async () => {
      const later = await vault.later(LATER_S);
      const ids = idsOf(`committed-${name}`, 3);
      // What order they have in the table or in an index says nothing of their own.
      await expired(ordered(ids));
      const transaction = await begin(await vault.ahead(LATER_S), vault.key);
      for (const token of named(ids)) await transaction.created(token);
      const answered = await crossing(
        [ids[1]],
        [() => transaction.commit(), () => later.tokenize(named(ids))],
      );
      expect(answered).to.deep.equal([200, 409]);
    });
  }

  it('over aliases of which there are few: all are stored', async () => {
    const alias = { id: '{{ data | alias_preserve_format }}', type: 'token', data: '777' };
    const list = Array.from({ length: 100 }, () => alias);
    for (let round = 0; round < ROUNDS; round += 1) {
      await vault.control.pool.query('DELETE FROM tokens');
      const answers = await Promise.all(idsOf('', 4).map(() => vault.tokens.tokenize(list)));
      expect(statuses(answers)).to.deep.equal(answers.map(() => 200));
      const { rowCount } = await vault.control.pool.query('SELECT 1 FROM tokens');
      expect(rowCount).to.equal(list.length * answers.length);
    }
  });

  describe('while somebody has an id and does not let go of it', () => {
    const HELD = { id: 'held', type: 'token', data: 'x' };
    let other: TokenClient;
    before(async () => {
      const tenant = await vault.control.addTenant('Other');
      other = tokenClient(vault.url, await vault.keyWith({ rules: REVEAL_ALL }, tenant));
    });
    beforeEach(async () => {
      await holder.query('BEGIN');
      await holder.query(
        `INSERT INTO tokens (tenant_id, id, type, container, sealed, created_by)
         VALUES ($1, $2, 'token', '/', '', $1)`,
        [vault.control.tenant.id, HELD.id],
      );
    });
    afterEach(() => holder.query('ROLLBACK'));

    /** As many statements as are under way at once, each with that id in it. */
    async function waitingCreates(): Promise<Promise<Answer<unknown>>[]> {
      const creates: Promise<Answer<unknown>>[] = [];
      for (const count of [1, 2]) {
        creates.push(vault.tokens.create(HELD));
        await waiting(count);
      }
      return creates;
    }

    it('creates of other tenants, and those of assigned ids, are no part of it', async () => {
      const refused = await waitingCreates();
      const { id, ...unnamed } = HELD;
      const served = await Promise.all([
        other.create(unnamed),
        other.create({ ...unnamed, id: 'of-another-tenant' }),
        other.create(HELD),
        vault.tokens.create(unnamed),
      ]);
      expect(statuses(served)).to.deep.equal([201, 201, 201, 201]);
      expect(statuses(await Promise.all(refused))).to.deep.equal([503, 503]);
    });

    describe('for as long as a statement may take', () => {
      /** As of many waits in turn, each shorter than a lock may be waited for. */
      const NO_LIMIT = `
        CREATE FUNCTION wait_longer() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN PERFORM set_config('lock_timeout', '0', true); RETURN NEW; END $$;
        CREATE TRIGGER wait_longer BEFORE INSERT ON tokens FOR EACH ROW
          WHEN (NEW.id = '${HELD.id}') EXECUTE FUNCTION wait_longer()`;
      const admin = (text: string) => vault.control.pool.query(text);
      before(() => admin(NO_LIMIT));
      after(() => admin('DROP TRIGGER wait_longer ON tokens; DROP FUNCTION wait_longer()'));

      it('those of its tenant that wait behind it are tried', async () => {
        const refused = await waitingCreates();
        const served = await Promise.all(
          named(idsOf('behind', 20)).map((token) => vault.tokens.create(token)),
        );
        expect(statuses(served)).to.deep.equal(served.map(() => 201));
        expect(statuses(await Promise.all(refused))).to.deep.equal([503, 503]);
      });
    });

    it('of its own tenant only who wants that id is refused', async () => {
      const refused = await waitingCreates();
      const [again, ...served] = [HELD, ...named(idsOf('beside', 20))].map((token) =>
        vault.tokens.create(token),
      );
      expect(statuses(await Promise.all(served))).to.deep.equal(served.map(() => 201));
      expect(
        statuses(await Promise.all([...refused, again as Promise<Answer<unknown>>])),
      ).to.deep.equal([503, 503, 503]);
    });
  });
});
