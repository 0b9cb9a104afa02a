/** What a proxy adds to a request at one connection, over asking the destination directly. */
import type { Claim } from './claim.ts';
import { startHttpLoad } from './load/load.ts';
import type { Workload } from './load/workload.ts';
import { clearOrders, createProxy } from './proxy-calls.ts';
import { startGateway, startOrigin } from './proxy-lab.ts';
import { type Figure, interleave, p50, type Round, summary } from './rounds.ts';
import { median } from './statistics.ts';
import { createVault } from './vault.ts';

const BODY_BYTES = 1024;
const PLAN = { rounds: 7, limit: { seconds: 2 }, warmUp: { seconds: 4 } };
const p99: Figure = ({ p99_ms }) => p99_ms;

export const proxyLatency: Claim = {
  name: 'proxy-latency',
  async measure(lab) {
    const vault = await createVault(lab, 'proxy_latency');
    const origin = await startOrigin(lab);
    const workloads = [clearOrders(vault, await createProxy(vault, origin.port), BODY_BYTES)];
    const { port, pid } = await startGateway(lab, vault);
    await warmUp(port, workloads);
    const alone = { connections: 1, workloads };
    const ours = lab.keep(await startHttpLoad({ port, ...alone }));
    const direct = lab.keep(await startHttpLoad({ port: origin.port, ...alone }));
    const rounds = await interleave(
      { product: { load: ours, pid }, direct: { load: direct, pid: origin.pid } },
      { ...PLAN, postgresPid: lab.postgresPid() },
    );
    const details = { ...summary('product', rounds.product), ...summary('direct', rounds.direct) };
    const finding = (name: string, figure: Figure, atMost: number) => ({
      title: `1 KiB of JSON at one connection, ${name} over direct`,
      unit: 'ms' as const,
      ...added(rounds.product, rounds.direct, figure),
      target: { atMost },
      details,
    });
    return [finding('p50', p50, 1.5), finding('p99', p99, 5)];
  },
};

/** The median over the rounds of what `ours` has more than `direct`, and that of each round. */
function added(
  ours: readonly Round[],
  direct: readonly Round[],
  figure: Figure,
): { value: number; rounds: number[] } {
  const rounds = ours.flatMap((round, index) => {
    const other = direct[index];
    return other === undefined ? [] : [figure(round) - figure(other)];
  });
  return { value: median(rounds), rounds };
}

/** One connection alone would take minutes to bring the server's code to its final form. */
async function warmUp(port: number, workloads: Workload[]): Promise<void> {
  const load = await startHttpLoad({ port, connections: 64, workloads });
  await load.run({ seconds: 6 });
  await load.stop();
}
