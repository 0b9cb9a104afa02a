/**
 * Commit, rollback and the end of its hour meet in the same transaction, a thousand times, with a write
 * under way: one of them ends it, and its tokens are there all or none (attack 240).
 */
import { expect } from 'chai';
import { createLogger } from '../../shared/observability/logger.ts';
import { createPool, type Pool } from '../../shared/postgres/pool.ts';
import { sweepTransactions } from '../../shared/transactions/sweep-transactions.ts';
import { takeFromEnded } from '../../shared/transactions/transaction-store.ts';
import { HOUR_S, startVault, type Vault } from '../api/tokens/vault.ts';
import { begin } from '../api/transactions/transaction-client.ts';
import { inParallel } from '../support/in-parallel.ts';

const ROUNDS = 1_000;

interface Ended {
  /** Who says to have ended it. */
  winners: string[];
  /** The tokens that belong to it, and those that it refused. */
  staged: string[];
  refused: string[];
  changed: string;
}

describe('the endings of a transaction', function () {
  this.timeout(240_000);
  let vault: Vault;
  /** By its clock every transaction is over. */
  let late: Pool;
  before(async () => {
    vault = await startVault();
    late = createPool({
      connectionString: vault.control.database.connectionString,
      ...{ max: 8, applicationName: 'test', clockOffsetSeconds: HOUR_S + 60 },
      log: createLogger('test', 'silent'),
    });
  });
  after(async () => {
    await late.end();
    await vault.stop();
  });

  async function race(round: number): Promise<Ended> {
    const { id: changed } = await vault.tokens.created({ type: 'token', data: 'before' });
    const transaction = await begin(vault.url, vault.key);
    const first = await transaction.created({ type: 'token', data: 'x' });
    expect((await transaction.patch(changed, { data: 'after' })).status).to.equal(200);
    const write = { type: 'token', data: 'x', id: `late-${round}` };
    const attempts: Record<string, () => Promise<boolean>> = {
      commit: () => transaction.commit().then(({ status }) => won(status)),
      again: () => transaction.commit().then(({ status }) => won(status)),
      rollback: () => transaction.rollback().then(({ status }) => won(status)),
      expiry: () => takeFromEnded(late, vault.control.tenant.id, changed),
    };
    // It asks the database directly and is the fastest: half of the rounds are the others' alone.
    if (round % 8 >= 4) delete attempts.expiry;
    const names = Object.keys(attempts).map((_, n, all) => all[(n + round) % all.length] ?? '');
    const writing = transaction.create(write);
    const outcomes = await Promise.all(names.map((name) => attempts[name]?.()));
    const { status } = await writing;
    expect(status).to.be.oneOf([201, 409]);
    return {
      winners: names.filter((_, n) => outcomes[n] === true),
      staged: status === 201 ? [first.id, write.id] : [first.id],
      refused: status === 201 ? [] : [write.id],
      changed,
    };
  }

  function won(status: number): boolean {
    expect(status).to.be.oneOf([200, 409]);
    return status === 200;
  }

  async function expectWhole({ winners, staged, refused, changed }: Ended): Promise<void> {
    expect(winners).to.have.lengthOf(1);
    const committed = winners[0] === 'commit' || winners[0] === 'again';
    const { rows } = await vault.control.pool.query<{ id: string; changed: boolean }>(
      'SELECT id, modified_at IS NOT NULL AS changed FROM tokens WHERE id = ANY ($1)',
      [[...staged, ...refused, changed]],
    );
    const there = rows.map(({ id }) => id).filter((id) => id !== changed);
    expect(there.toSorted()).to.deep.equal(committed ? staged.toSorted() : []);
    expect(rows.find(({ id }) => id === changed)?.changed).to.equal(committed);
  }

  it('are one each time, and all of its tokens are there or none', async () => {
    const won = new Map<string, number>();
    await inParallel(
      Array.from({ length: ROUNDS }, (_, n) => n),
      async (round) => {
        const ended = await race(round);
        await expectWhole(ended);
        const [winner = ''] = ended.winners;
        won.set(winner, (won.get(winner) ?? 0) + 1);
      },
    );
    // Each of them has won at times, or the race was none.
    expect([...won.keys()]).to.have.members(['commit', 'again', 'rollback', 'expiry']);
    while ((await sweepTransactions(late, 1_000)) > 0);
    const { rows } = await vault.control.pool.query<{ n: number }>(
      `SELECT ((SELECT count(*) FROM staged_tokens) + (SELECT count(*) FROM token_locks)
        + (SELECT count(*) FROM transactions WHERE state IN ('open', 'expired')))::int4 AS n`,
    );
    expect(rows[0]?.n).to.equal(0);
  });
});
