/** Transactions of ten creates: tokens committed in a second, and against creates outside of any. */
import { createCards, newCard } from './cards.ts';
import { startProcess } from './child-process.ts';
import type { Claim } from './claim.ts';
import { asLoad } from './load/load.ts';
import type { TransactionLoadSettings } from './load/transaction-load.ts';
import { type Figure, interleave, ratio, summary } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { startSubject } from './start-subject.ts';
import { median } from './statistics.ts';
import { createVault, startDataPlane } from './vault.ts';

const TOKENS = 10_000;
const CREATES = 10;
const CONNECTIONS = 64;
const BODIES = 2_000;
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };

const perSecond: Figure = ({ operations, wall_s }) => operations / wall_s;

export const transaction: Claim = {
  name: 'transaction',
  async measure(lab) {
    const vault = await createVault(lab, 'transaction');
    await seedCards(vault, TOKENS);
    const { port, pid } = await startDataPlane(lab, vault);
    const bodies = Array.from({ length: BODIES }, () => JSON.stringify(newCard()));
    const settings: TransactionLoadSettings = {
      ...{ port, connections: CONNECTIONS, key: vault.key, bodies, creates: CREATES },
    };
    const load = asLoad(lab.keep(await startProcess('load/transaction-load.ts', settings)));
    const plain = await startSubject(lab, { port, pid }, createCards(vault));
    const plan = { ...PLAN, postgresPid: lab.postgresPid() };
    const rounds = await interleave({ inside: { load, pid }, outside: plain }, plan);
    const speeds = rounds.inside.map(perSecond);
    const details = { ...summary('inside', rounds.inside), ...summary('outside', rounds.outside) };
    return [
      {
        title: 'transactions of 10 creates (card): tokens committed per second, all on one machine',
        ...{ unit: '/s', value: median(speeds), rounds: speeds, target: { atLeast: 3_000 } },
        details,
      },
      {
        title: 'the same : POST /tokens outside of transactions, per second',
        ...{ unit: 'x', ...ratio(rounds.inside, rounds.outside, perSecond), details },
      },
    ];
  },
};
