/**
 * Run by descriptors.test.ts in a process that may have few of them: hosts are lost while there is no room
 * for another, or for half of one. Prints what is open before and after, and how a run ends then.
 */
import { closeSync, openSync, readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Supervisor } from '../../shared/sandbox/supervisor.ts';

const ROUNDS = 6;
const TRIES_MS = 400;
const READY_MS_MAX = 20_000;

const open = (): number => readdirSync('/proc/self/fd').length;

function fill(): number[] {
  const held: number[] = [];
  try {
    for (;;) held.push(openSync('/dev/null', 'r'));
  } catch {
    return held;
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (let waited_ms = 0; !holds(); waited_ms += 20) {
    if (waited_ms > READY_MS_MAX) throw new Error('it does not come about');
    await delay(20);
  }
}

const options = { host_count: 1, thread_count: 4, spares: false, strict: false };
const supervisor = await Supervisor.start(options);
const before = open();
for (let round = 0; round < ROUNDS; round += 1) {
  const [pid = 0] = supervisor.status().pids;
  const held = fill();
  process.kill(pid, 'SIGKILL');
  await until(() => !supervisor.status().pids.includes(pid));
  for (const descriptor of held.splice(0, 2 * round)) closeSync(descriptor);
  await delay(TRIES_MS);
  for (const descriptor of held) closeSync(descriptor);
  await until(() => supervisor.status().ready_count === 1);
}
const source = 'module.exports = () => 1;';
const { result } = await supervisor.run({ tenant_id: 'tenant', script_version: '1', source });
const after = open();
await supervisor.close();
process.stdout.write(JSON.stringify({ before, after, result }));
