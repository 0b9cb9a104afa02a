/** A server of the bench under the load that claims of throughput use. */
import type { Lab } from './lab.ts';
import { startHttpLoad } from './load/load.ts';
import type { Workload } from './load/workload.ts';
import type { Subject } from './rounds.ts';

/** Connections with one request in flight on each. */
const CONNECTIONS = 64;

export async function startSubject(
  lab: Lab,
  { port, pid }: { port: number; pid: number },
  workload: Workload,
): Promise<Subject> {
  const settings = { port, connections: CONNECTIONS, workloads: [workload] };
  return { load: lab.keep(await startHttpLoad(settings)), pid };
}
