/** A host in which nothing runs: it looks at its threads seldom, and misses nothing when something does. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { skipUnlessLinux } from '../support/skip.ts';

/** One step that V8 cannot end: only who is told that it holds a thread can. */
const SQUARES = `module.exports = () => {
  let x = 3n; for (let i = 0; i < 40; i++) x *= x; return String(x).length; };`;
/** Longer than it takes a host to rest. */
const REST_MS = 2_000;

describe('a sandbox host that rests', function () {
  this.timeout(60_000);
  let sandbox: Sandbox;
  const lost: string[] = [];
  before(async () => {
    sandbox = await startSandbox({ onHostLost: (reason) => lost.push(reason) });
    expect(await sandbox.value('module.exports = () => 1;')).to.equal(1);
    await delay(REST_MS);
  });
  after(() => sandbox?.supervisor.close());

  const servingPid = (): number => sandbox.supervisor.status().pids[0] as number;
  const wakeUps = (pid: number): number =>
    Number(
      /^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
    );

  it('wakes up for its signs of life alone', async function () {
    skipUnlessLinux(this, 'wake-ups are counted in /proc');
    const pid = servingPid();
    const before = wakeUps(pid);
    await delay(2_000);
    expect(wakeUps(pid) - before).to.be.within(1, 40);
  });

  it('sees that a script holds it', async () => {
    const pid = servingPid();
    const ended = await sandbox.result(SQUARES, { tenant_id: 'holder', deadline_ms: 500 });
    expect(ended).to.deep.equal({ kind: 'timeout', limit: 'run', limit_ms: 500 });
    while (servingPid() === pid) await delay(20);
    expect(lost).to.deep.equal(['deadline']);
  });

  it('goes on with runs that come while it rests again', async () => {
    for (let round = 0; round < 3; round += 1) {
      await delay(round * REST_MS);
      expect(await sandbox.value('module.exports = () => 1;')).to.equal(1);
    }
  });
});
