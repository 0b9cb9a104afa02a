/** Hosts that somebody kills all at once: no script has done that, so none is blamed for it. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { ScriptResult } from '../../shared/sandbox/protocol.ts';
import type { ScriptRequest } from '../../shared/sandbox/supervisor.ts';
import { fakeService, type Sandbox, startSandbox } from '../support/sandbox.ts';
import { skipUnlessLinux } from '../support/skip.ts';

/** Computes for long enough to be seen at it, after a call or without; or only calls. */
const SOURCE = `module.exports = async ({ args }) => {
  if (args.calls) await fetch('https://a.example/').catch(() => 'no answer');
  const end = Date.now() + args.computes_ms;
  while (Date.now() < end);
  return 'done';
};`;
/** Hundredths of a second: starting a run takes less, and who computes for so long is known by then. */
const COMPUTED = 30;
const DONE: ScriptResult = { kind: 'ok', value: '"done"' };

/** Time that all threads of the process have computed, in hundredths of a second. */
function computed(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

describe('sandbox hosts that are killed', function () {
  this.timeout(60_000);
  let sandbox: Sandbox;
  before(async function () {
    skipUnlessLinux(this, 'what a process has computed is read from /proc');
    sandbox = await startSandbox();
  });
  after(() => sandbox?.supervisor.close());
  beforeEach(async () => {
    while (sandbox.supervisor.status().ready_count < 2) await new Promise((r) => setTimeout(r, 10));
  });

  const run = async (
    script_version: string,
    args: { calls?: boolean; computes_ms: number },
    services: ScriptRequest['services'] = {},
  ): Promise<ScriptResult> => {
    const request = { tenant_id: 'tenant', script_version, source: SOURCE, services };
    return (await sandbox.supervisor.run({ ...request, args: JSON.stringify(args) })).result;
  };

  /** How many of four runs were under way at the same time. */
  async function together(script_version: string): Promise<number> {
    const fetch = fakeService(async () => {
      await new Promise((resolve) => setTimeout(resolve, 150));
      return '{}';
    });
    const one = () => run(script_version, { calls: true, computes_ms: 0 }, { fetch: fetch.run });
    expect(await Promise.all([one(), one(), one(), one()])).to.deep.equal(Array(4).fill(DONE));
    return fetch.openMost;
  }

  /** Settles when a host computes, which is the one that is returned. */
  async function computing(): Promise<number> {
    const before = new Map(sandbox.supervisor.status().pids.map((pid) => [pid, computed(pid)]));
    for (;;) {
      for (const [pid, hundredths] of before) {
        if (computed(pid) > hundredths + COMPUTED) return pid;
      }
      await new Promise((r) => setTimeout(r, 10));
    }
  }

  const kill = (pids: readonly number[]): void => {
    for (const pid of pids) process.kill(pid, 'SIGKILL');
  };

  /** In either order: what was seen first says no more than what was seen last. */
  const ORDERS = [
    ['first', (at: number, others: number[]) => [at, ...others]],
    ['last', (at: number, others: number[]) => [...others, at]],
  ] as const;
  for (const [place, ordered] of ORDERS) {
    it(`all at once, the one that computes ${place}: it computes again, and is not blamed`, async () => {
      const running = run(`computes-${place}`, { computes_ms: 1_000 });
      const at = await computing();
      const others = sandbox.supervisor.status().pids.filter((pid) => pid !== at);
      kill(ordered(at, others));
      expect(await running).to.deep.equal(DONE);
      expect(await together(`computes-${place}`)).to.equal(4);
    });
  }

  it('all at once, when one had called out: that is not done twice, and it is not blamed', async () => {
    const fetch = fakeService(async () => '{}');
    const args = { calls: true, computes_ms: 1_000 };
    const running = run('called', args, { fetch: fetch.run });
    await computing();
    kill(sandbox.supervisor.status().pids);
    expect(await running).to.deep.equal({ kind: 'interrupted' });
    expect(fetch.calls).to.equal(1);
    expect(await together('called')).to.equal(4);
  });

  it('alone, while one computes there: that may have been its doing', async () => {
    const running = run('alone', { computes_ms: 1_000 });
    kill([await computing()]);
    expect(await running).to.deep.equal({ kind: 'crashed' });
    expect(await together('alone')).to.equal(1);
  });

  it('all at once, when the one that computes had been blamed: it stays so', async () => {
    const running = run('alone', { computes_ms: 1_000 });
    await computing();
    kill(sandbox.supervisor.status().pids);
    expect(await running).to.deep.equal(DONE);
    expect(await together('alone')).to.equal(1);
  });
});
