/** Latency of `GET /tokens/{id}` while a reactor of the same vault ends its host every second. */
import { readCards } from './cards.ts';
import type { Claim } from './claim.ts';
import { type Load, startHttpLoad } from './load/load.ts';
import { createReactor } from './reactors.ts';
import { seedCards } from './seed-cards.ts';
import { median } from './statistics.ts';
import { createVault, startDataPlane, type Vault } from './vault.ts';

const TOKENS = 1_000;
const CONNECTIONS = 8;
const ROUNDS = 5;
const SECONDS = 4;
const EVERY_MS = 1_000;
/** Ends its process: V8 aborts where it cannot grow an array. */
const BOMB = 'module.exports = () => Array.from({ length: 1e9 });';

export const readBesideBomb: Claim = {
  name: 'read-beside-bomb',
  async measure(lab) {
    const vault = await createVault(lab, 'read_beside_bomb');
    const workload = readCards(vault, await seedCards(vault, TOKENS));
    const bomb = await createReactor(vault, BOMB);
    const { port } = await startDataPlane(lab, vault);
    const settings = { port, connections: CONNECTIONS, workloads: [workload] };
    const load = lab.keep(await startHttpLoad(settings));
    await load.run({ seconds: 3 });
    const idle = await measure(load);
    const bombing = setInterval(() => void explode(vault, port, bomb), EVERY_MS);
    const beside = await measure(load).finally(() => clearInterval(bombing));
    const rounds = beside.map((p99, index) => p99 / (idle[index] ?? p99));
    return [
      {
        title: 'p99 of GET /tokens/{id} beside a bomb every second : without',
        unit: 'x',
        value: median(rounds),
        rounds,
        details: { idle_p99_ms: median(idle), beside_p99_ms: median(beside) },
      },
    ];
  },
};

async function measure(load: Load): Promise<number[]> {
  const p99: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    p99.push((await load.run({ seconds: SECONDS })).p99_ms);
  }
  return p99;
}

/** How it ends is not the point: in quarantine it is one of many that wait, the last ones for the end. */
async function explode({ key }: Vault, port: number, reactorId: string): Promise<void> {
  await fetch(`http://127.0.0.1:${port}/reactors/${reactorId}/react`, {
    method: 'POST',
    headers: { 'bt-api-key': key, 'content-type': 'application/json' },
    body: '{"args":{}}',
  })
    .then((response) => response.arrayBuffer())
    .catch(() => undefined);
}
