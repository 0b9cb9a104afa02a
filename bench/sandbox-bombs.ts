/**
 * What each hostile script comes to: how it ends, after how long, and the most memory its host took,
 * while another tenant's script is called over and over. Prints the table of them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Supervisor } from '../shared/sandbox/supervisor.ts';
import { BOMBS } from '../test/support/bombs.ts';
import type { Claim } from './claim.ts';
import { residentMiB } from './process-usage.ts';
import { median } from './statistics.ts';

const DEADLINE_MS = 1_000;
const SAMPLE_MS = 10;

interface Ended {
  readonly kind: string;
  readonly ms: number;
  readonly most_mib: number;
  readonly neighbour_ms: number;
}

export const bombs: Claim = {
  name: 'bombs',
  async measure(lab) {
    const supervisor = await Supervisor.start({ host_count: 1, strict: false });
    lab.keep({ stop: () => supervisor.close() });
    const ends: Ended[] = [];
    process.stdout.write(row('hostile script', 'ended as', 'ms', 'host MiB', 'neighbour ms'));
    for (const [name, body] of BOMBS) {
      const ended = await explode(supervisor, name, body);
      const { kind, ms, most_mib, neighbour_ms } = ended;
      process.stdout.write(row(name, kind, ...[ms, most_mib, neighbour_ms].map(rounded)));
      ends.push(ended);
    }
    const slowest = ends.map(({ neighbour_ms }) => neighbour_ms);
    return [
      {
        title: `a neighbour's slowest call beside each of ${BOMBS.length} hostile scripts`,
        unit: 'ms',
        value: median(slowest),
        rounds: slowest,
        details: {
          most_ms: Math.max(...slowest),
          host_most_mib: Math.max(...ends.map(({ most_mib }) => most_mib)),
          longest_run_ms: Math.max(...ends.map(({ ms }) => ms)),
        },
      },
    ];
  },
};

/** Throws when a call of the neighbour fails: then nothing else here is worth a figure. */
async function explode(supervisor: Supervisor, name: string, body: string): Promise<Ended> {
  const source = `module.exports = async function (req) { ${body} };`;
  let over = false;
  let most_mib = 0;
  const sampling = (async () => {
    while (!over) {
      most_mib = Math.max(most_mib, ...supervisor.status().pids.map(residentOrNone));
      await delay(SAMPLE_MS);
    }
  })();
  const startedAt = performance.now();
  let ms = 0;
  const bomb = supervisor
    .run({ tenant_id: `bomber of ${name}`, script_version: name, source, deadline_ms: DEADLINE_MS })
    .finally(() => {
      ms = performance.now() - startedAt;
      over = true;
    });
  let neighbour_ms = 0;
  while (!over) neighbour_ms = Math.max(neighbour_ms, await callNeighbour(supervisor));
  await sampling;
  return { kind: (await bomb).result.kind, ms, most_mib, neighbour_ms };
}

async function callNeighbour(supervisor: Supervisor): Promise<number> {
  const startedAt = performance.now();
  const source = 'module.exports = () => 1 + 1;';
  const { result } = await supervisor.run({
    ...{ tenant_id: 'neighbour', script_version: '1', source },
  });
  if (result.kind !== 'ok') throw new Error(`the neighbour's run ended as ${result.kind}`);
  return performance.now() - startedAt;
}

/** 0 for a host that has just ended. */
function residentOrNone(pid: number): number {
  try {
    return residentMiB(pid);
  } catch {
    return 0;
  }
}

const rounded = (value: number): string => value.toFixed(0);

function row(name: string, kind: string, ...figures: readonly string[]): string {
  const cells = figures.map((figure) => figure.padStart(13)).join('');
  return `  ${name.padEnd(42)}${kind.padEnd(18)}${cells}\n`;
}
