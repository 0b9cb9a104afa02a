/** `POST /tokens` of cards with a new idempotency key each, against the same without one. */
import { createCards, createKeyedCards } from './cards.ts';
import type { Claim } from './claim.ts';
import { interleave, ratio, summary, wholeCost } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { startSubject } from './start-subject.ts';
import { createVault, startDataPlane } from './vault.ts';

const TOKENS = 10_000;
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };

export const idempotency: Claim = {
  name: 'idempotency',
  async measure(lab) {
    const vault = await createVault(lab, 'idempotency');
    await seedCards(vault, TOKENS);
    const server = await startDataPlane(lab, vault);
    const keyed = await startSubject(lab, server, createKeyedCards(vault));
    const plain = await startSubject(lab, server, createCards(vault));
    const plan = { ...PLAN, postgresPid: lab.postgresPid() };
    const rounds = await interleave({ keyed, plain }, plan);
    return [
      {
        title: 'POST /tokens (card) with an idempotency key per CPU-second, Postgres too : without',
        unit: 'x',
        // Costs, so the other way round.
        ...ratio(rounds.plain, rounds.keyed, wholeCost),
        target: { atLeast: 0.85 },
        details: { ...summary('keyed', rounds.keyed), ...summary('plain', rounds.plain) },
      },
    ];
  },
};
