/** Resident memory of the data plane after a minute of reads and creates as fast as they go. */
import { setTimeout as delay } from 'node:timers/promises';
import { createCards, readCards } from './cards.ts';
import type { Claim } from './claim.ts';
import { startHttpLoad } from './load/load.ts';
import { residentMiB } from './process-usage.ts';
import { seedCards } from './seed-cards.ts';
import { median } from './statistics.ts';
import { createVault, startDataPlane } from './vault.ts';

const TOKENS = 10_000;
const CONNECTIONS = 64;
const SECONDS = 60;
const SAMPLE_MS = 500;
/** The last ten seconds count: garbage collection makes single samples differ. */
const COUNTED_SAMPLES = 20;

export const memory: Claim = {
  name: 'memory',
  async measure(lab) {
    const vault = await createVault(lab, 'memory');
    const workloads = [readCards(vault, await seedCards(vault, TOKENS)), createCards(vault)];
    const { port, pid } = await startDataPlane(lab, vault);
    const idle = residentMiB(pid);
    const load = lab.keep(await startHttpLoad({ port, connections: CONNECTIONS, workloads }));
    const samples: number[] = [];
    let running = true;
    const sampling = (async () => {
      while (running) {
        samples.push(residentMiB(pid));
        await delay(SAMPLE_MS);
      }
    })();
    const { operations } = await load.run({ seconds: SECONDS }).finally(() => {
      running = false;
    });
    await sampling;
    const last = samples.slice(-COUNTED_SAMPLES);
    return [
      {
        title: 'Resident memory of the worker after a minute at full load',
        unit: 'MiB',
        value: median(last),
        rounds: last,
        target: { atMost: 200 },
        details: { idle_mib: idle, most_mib: Math.max(...samples), operations },
      },
    ];
  },
};
