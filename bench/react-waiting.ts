/** A hundred reactions at a time that each wait half a second for an answer from outside. */
import { createServer } from 'node:http';
import { parseAddressRange } from '../shared/egress/ip-address.ts';
import { closeServer, listen } from '../shared/process/listen.ts';
import type { Claim } from './claim.ts';
import { startHttpLoad } from './load/load.ts';
import { descendantsOf, residentMiB } from './process-usage.ts';
import { createReactor, reactWith } from './reactors.ts';
import { median } from './statistics.ts';
import { createVault, startDataPlane } from './vault.ts';

const CONNECTIONS = 100;
const WAIT_MS = 500;
const ROUNDS = 5;
const SECONDS = 4;
const SAMPLE_MS = 100;

const code = (port: number): string => `module.exports = async () => {
  const response = await fetch('http://127.0.0.1:${port}/');
  return { raw: await response.json() };
};`;

export const reactWaiting: Claim = {
  name: 'react-waiting',
  async measure(lab) {
    const slow = createServer((_req, res) => setTimeout(() => res.end('{"paid":true}'), WAIT_MS));
    const slowPort = await listen(slow, 0, '127.0.0.1');
    lab.keep({ stop: () => closeServer(slow) });
    const vault = await createVault(lab, 'react_waiting');
    const reactor = await createReactor(vault, code(slowPort));
    const workload = reactWith(vault, reactor, { amount: 1 }, '{"raw":{"paid":true}}');
    const loopback = parseAddressRange('127.0.0.0/8');
    if (loopback === undefined) throw new Error('not a range');
    const settings = { sandboxHosts: 1, egressAllow: [loopback] };
    const { port, pid } = await startDataPlane(lab, vault, settings);
    const load = lab.keep(
      await startHttpLoad({ port, connections: CONNECTIONS, workloads: [workload] }),
    );
    await load.run({ seconds: 2 });
    let most_mib = 0;
    const sampling = setInterval(() => {
      for (const child of descendantsOf(pid)) most_mib = Math.max(most_mib, residentOf(child));
    }, SAMPLE_MS);
    const rates: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const { operations, wall_s } = await load.run({ seconds: SECONDS });
      rates.push(operations / wall_s);
    }
    clearInterval(sampling);
    const details = { connections: CONNECTIONS, wait_ms: WAIT_MS };
    return [
      {
        title: '100 concurrent reactions that wait 500 ms for a fetch, one host',
        unit: '/s',
        value: median(rates),
        rounds: rates,
        target: { atLeast: 150 },
        details,
      },
      {
        title: 'Resident memory of the largest sandbox host meanwhile',
        unit: 'MiB',
        value: most_mib,
        rounds: [most_mib],
        target: { atMost: 400 },
        details,
      },
    ];
  },
};

/** 0 when it has just ended. */
function residentOf(pid: number): number {
  try {
    return residentMiB(pid);
  } catch {
    return 0;
  }
}
