/** `GET /tokens/{id}` on one connection: how much it adds to the one round trip it cannot do without. */
import { readCards } from './cards.ts';
import { startProcess } from './child-process.ts';
import type { Claim } from './claim.ts';
import { asLoad, startHttpLoad } from './load/load.ts';
import type { RoundTripSettings } from './load/round-trips.ts';
import type { Workload } from './load/workload.ts';
import { interleave, p50, ratio, summary } from './rounds.ts';
import { seedCards } from './seed-cards.ts';
import { createVault, startDataPlane } from './vault.ts';

const TOKENS = 10_000;
const PLAN = { rounds: 7, limit: { seconds: 2 }, warmUp: { seconds: 4 } };

export const getTokenAlone: Claim = {
  name: 'get-token-alone',
  async measure(lab) {
    const vault = await createVault(lab, 'get_token_alone');
    const ids = await seedCards(vault, TOKENS);
    const { port, pid } = await startDataPlane(lab, vault);
    const workloads = [readCards(vault, ids)];
    await warmUp(port, workloads);
    const load = lab.keep(await startHttpLoad({ port, connections: 1, workloads }));
    const { databaseUrl: connectionString, tenantId } = vault;
    const settings: RoundTripSettings = { connectionString, tenantId, ids };
    const trips = asLoad(lab.keep(await startProcess<object>('load/round-trips.ts', settings)));
    const rounds = await interleave(
      { product: { load, pid }, round_trip: { load: trips } },
      { ...PLAN, postgresPid: lab.postgresPid() },
    );
    return [
      {
        title: 'GET /tokens/{id} at one connection, p50 : one round trip of pg, p50',
        unit: 'x',
        ...ratio(rounds.product, rounds.round_trip, p50),
        target: { atMost: 2 },
        details: {
          ...summary('product', rounds.product),
          ...summary('round_trip', rounds.round_trip),
        },
      },
    ];
  },
};

/** One connection alone would take minutes to bring the server's code to its final form. */
async function warmUp(port: number, workloads: Workload[]): Promise<void> {
  const load = await startHttpLoad({ port, connections: 64, workloads });
  await load.run({ seconds: 6 });
  await load.stop();
}
