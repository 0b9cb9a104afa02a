/** `npm start` on a vault that exists: from the command to the line that says it is ready. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Claim } from './claim.ts';
import type { Lab } from './lab.ts';
import { median } from './statistics.ts';

const STARTS = 5;
const READY = 'Sallyport is ready at ';
const ROOT = fileURLToPath(new URL('..', import.meta.url));

export const start: Claim = {
  name: 'start',
  async measure(lab) {
    const first_s = await startOnce(lab);
    const rounds: number[] = [];
    for (let round = 0; round < STARTS; round += 1) rounds.push(await startOnce(lab));
    return [
      {
        title: 'Second npm start to ready',
        unit: 's',
        value: median(rounds),
        rounds,
        target: { atMost: 4 },
        details: { first_s },
      },
    ];
  },
};

/** Seconds until it was ready; stopped again in order, as an operator would. */
async function startOnce(lab: Lab): Promise<number> {
  const startedAt = performance.now();
  const child = spawn('npm', ['start'], {
    cwd: ROOT,
    env: {
      ...lab.inherited,
      DATA_DIR: join(lab.directory, 'start'),
      PORT: '0',
      CONTROL_PLANE_PORT: '0',
      METRICS_PORT: '0',
      LOG_LEVEL: 'warn',
    },
    // A process group of its own: npm does not pass every signal on.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const stopping = lab.keep({ stop: () => stopGroup(child) });
  await untilReady(child);
  const seconds = (performance.now() - startedAt) / 1000;
  await stopping.stop();
  if (child.exitCode !== 0) throw new Error('npm start did not stop with 0');
  return seconds;
}

async function untilReady(child: ChildProcess): Promise<void> {
  if (child.stdout === null) throw new Error('npm start has no output');
  // Read to its end, also after the line: a full pipe would block the server.
  const lines = createInterface({ input: child.stdout });
  await new Promise<void>((resolve, reject) => {
    lines.on('line', (line) => line.startsWith(READY) && resolve());
    lines.once('close', () => reject(new Error('npm start ended before it was ready')));
  });
}

async function stopGroup(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  process.kill(-pid, 'SIGTERM');
  await exited;
}
