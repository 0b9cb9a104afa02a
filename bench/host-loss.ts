/** How long a killed sandbox host is missed: by another tenant's next call, and until its spare is there. */
import { setTimeout as delay } from 'node:timers/promises';
import { Supervisor } from '../shared/sandbox/supervisor.ts';
import type { Claim } from './claim.ts';
import { median } from './statistics.ts';

const ROUNDS = 15;
/** A slot and a spare. */
const HOSTS = 2;
const LOOK_MS = 5;

export const hostLoss: Claim = {
  name: 'host-loss',
  async measure(lab) {
    const supervisor = await Supervisor.start({ host_count: 1, strict: false });
    lab.keep({ stop: () => supervisor.close() });
    const served: number[] = [];
    const replaced: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await callNeighbour(supervisor);
      const [first] = supervisor.status().pids;
      if (first === undefined) throw new Error('no host runs');
      const killedAt = performance.now();
      process.kill(first, 'SIGKILL');
      await callNeighbour(supervisor);
      served.push(performance.now() - killedAt);
      await untilReady(supervisor, first);
      replaced.push(performance.now() - killedAt);
    }
    return [
      {
        title: 'a killed host: the next call of another tenant is answered after',
        unit: 'ms',
        value: median(served),
        rounds: served,
        target: { atMost: 200 },
        details: { most_ms: Math.max(...served) },
      },
      {
        title: 'a killed host: all hosts are ready again after',
        unit: 'ms',
        value: median(replaced),
        rounds: replaced,
        target: { atMost: 500 },
        details: { most_ms: Math.max(...replaced) },
      },
    ];
  },
};

async function callNeighbour(supervisor: Supervisor): Promise<void> {
  const { result } = await supervisor.run({
    tenant_id: 'neighbour',
    script_version: '1',
    source: 'module.exports = async () => ({ raw: 1 + 1 });',
  });
  if (result.kind !== 'ok') throw new Error(`the neighbour's run ended as ${result.kind}`);
}

async function untilReady(supervisor: Supervisor, lost: number): Promise<void> {
  for (;;) {
    const { pids, ready_count } = supervisor.status();
    if (!pids.includes(lost) && ready_count === HOSTS) return;
    await delay(LOOK_MS);
  }
}
