/** A trivial async function over HTTP, in a fresh context each and in a kept one, against workerd. */
import type { Claim } from './claim.ts';
import { freePort } from './free-port.ts';
import { startWorkerd } from './peers/workerd.ts';
import { createReactor, reactWith } from './reactors.ts';
import { interleave, perCpuSecond, ratio, summary } from './rounds.ts';
import { startSubject } from './start-subject.ts';
import { median } from './statistics.ts';
import { createVault, startDataPlane } from './vault.ts';

/** The same as in peers/workerd/worker.js. */
const CODE = 'module.exports = async (req) => ({ raw: { sum: req.args.a + req.args.b } });';
const ARGS = { a: 1, b: 2 };
const ANSWER = '{"raw":{"sum":3}}';
const PLAN = { rounds: 7, limit: { seconds: 3 }, warmUp: { seconds: 5 } };

export const react: Claim = {
  name: 'react',
  async measure(lab) {
    const vault = await createVault(lab, 'react');
    const workload = reactWith(vault, await createReactor(vault, CODE), ARGS, ANSWER);
    const fresh = await startSubject(lab, await startDataPlane(lab, vault), workload);
    const keeping = await startDataPlane(lab, vault, { sandboxReuse: 'reactor' });
    const kept = await startSubject(lab, keeping, workload);
    const peerPort = await freePort();
    const { pid } = lab.keep(await startWorkerd(peerPort));
    const peer = await startSubject(lab, { port: peerPort, pid }, workload);
    const plan = { ...PLAN, postgresPid: lab.postgresPid() };
    const rounds = await interleave({ fresh, kept, peer }, plan);
    const freshRates = rounds.fresh.map(perCpuSecond);
    const details = {
      ...summary('fresh', rounds.fresh),
      ...summary('kept', rounds.kept),
      ...summary('workerd', rounds.peer),
    };
    return [
      {
        title: 'reactions per CPU-second of all our processes, a fresh context each',
        unit: '/s',
        value: median(freshRates),
        rounds: freshRates,
        target: { atLeast: 1000 },
        details,
      },
      {
        title: 'reactions per CPU-second with SALLYPORT_SANDBOX_REUSE=reactor : workerd',
        unit: 'x',
        ...ratio(rounds.kept, rounds.peer, perCpuSecond),
        target: { atLeast: 1 },
        details,
      },
    ];
  },
};
