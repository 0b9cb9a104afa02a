/** Accepting an asynchronous reaction of one token, against `POST /tokens` of a card. */
import { createCards } from './cards.ts';
import type { Claim } from './claim.ts';
import type { Workload } from './load/workload.ts';
import { createReactor, reactWith } from './reactors.ts';
import { interleave, perCpuSecond, ratio, summary } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { startSubject } from './start-subject.ts';
import { createVault, runSql, startDataPlane, type Vault } from './vault.ts';

const CODE = 'module.exports = async (req) => ({ raw: req.args });';
const TOKENS = 1_000;
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };

export const reactAsync: Claim = {
  name: 'react-async',
  async measure(lab) {
    const vault = await createVault(lab, 'react_async');
    const [id = ''] = await seedCards(vault, TOKENS);
    const plane = await startDataPlane(lab, vault);
    const reactorId = await createReactor(vault, CODE);
    const accepting = await startSubject(lab, plane, acceptWith(vault, reactorId, id));
    // Nobody runs them, and only so many of a tenant may wait.
    const tidy = () => runSql(vault.databaseUrl, 'TRUNCATE jobs');
    const accept = { ...accepting, tidy };
    const create = await startSubject(lab, plane, createCards(vault));
    const plan = { ...PLAN, postgresPid: lab.postgresPid() };
    const rounds = await interleave({ accept, create }, plan);
    return [
      {
        title: 'asynchronous reactions accepted per CPU-second : POST /tokens (card)',
        unit: 'x',
        ...ratio(rounds.accept, rounds.create, perCpuSecond),
        target: { atLeast: 0.5 },
        details: { ...summary('accept', rounds.accept), ...summary('create', rounds.create) },
      },
    ];
  },
};

/** The same token each time, which is checked and not opened. */
function acceptWith(vault: Vault, reactorId: string, tokenId: string): Workload {
  const args = { card: `{{ ${tokenId} }}`, amount: 1200 };
  const workload = reactWith(vault, reactorId, args, '"asyncReactorRequestId":"');
  return {
    ...workload,
    request: workload.request.replace('/react ', '/react-async '),
    status: 202,
  };
}
