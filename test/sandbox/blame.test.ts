/**
 * Who is held guilty of a lost host, when scripts try to have others blamed for it, or nobody: by ending it
 * in a moment that no report has shown, beside others that compute or that only wait.
 */
import { expect } from 'chai';
import type { ScriptResult } from '../../shared/sandbox/protocol.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

/** Ends its host (V8 aborts) in a turn of its own, after a time in which it only waits. */
const abortsAfter = (wait_ms: number): string => `
  const text = 'x'.repeat(2 ** 27 + 64); text.charCodeAt(0);
  await new Promise((resolve) => setTimeout(resolve, ${wait_ms}));
  return text.split('').length;`;
const computesFor = (ms: number): string =>
  `for (const end = Date.now() + ${ms}; Date.now() < end; ); return 'done';`;
const script = (body: string): string => `module.exports = async (req) => { ${body} };`;
const DONE: ScriptResult = { kind: 'ok', value: '"done"' };
const answering = { fetch: async () => '{}' };

describe('the blame for a lost host', function () {
  this.timeout(120_000);
  let sandbox: Sandbox;
  let lost = 0;
  beforeEach(async () => {
    lost = 0;
    sandbox = await startSandbox({
      onHostLost: () => {
        lost += 1;
      },
    });
  });
  afterEach(() => sandbox?.supervisor.close());

  /** Calls the tenant's one script over and over while something else lasts; every run must end well. */
  async function whileComputing<T>(tenant_id: string, ms: number, other: Promise<T>): Promise<T> {
    const request = { tenant_id, script_version: 'one' };
    let over = false;
    const others = other.finally(() => {
      over = true;
    });
    do expect(await sandbox.result(script(computesFor(ms)), request)).to.deep.equal(DONE);
    while (!over);
    return others;
  }

  it('is not on who computes beside a script that ends it unseen; that one gets it', async () => {
    for (let attack = 0; attack < 2; attack += 1) {
      const attacked = sandbox.result(script(abortsAfter(300)), { tenant_id: 'attacker' });
      const ended = await whileComputing('victim', 500, attacked);
      expect(ended.kind).to.be.oneOf(['crashed', 'memory']);
    }
    // The victim’s script has not been convicted: it runs beside others, not behind the attacker’s.
    const sitting = sandbox.result(
      script('await new Promise((r) => setTimeout(r, 4_000)); return 1;'),
      {
        tenant_id: 'attacker',
      },
    );
    const request = { tenant_id: 'victim', script_version: 'one', deadline_ms: 2_500 };
    expect(await sandbox.result(script(computesFor(10)), request)).to.deep.equal(DONE);
    expect((await sitting).kind).to.equal('ok');
  });

  it('is on nobody when none of its threads was held: whoever waited there runs again at once', async () => {
    const waits = script(
      `await new Promise((resolve) => setTimeout(resolve, 300)); return 'done';`,
    );
    const waiting = sandbox.result(waits);
    await sandbox.value(script('return 1;'));
    const [serving] = sandbox.supervisor.status().pids;
    process.kill(serving as number, 'SIGKILL');
    expect(await waiting).to.deep.equal(DONE);
    // The slot's and the spare: none was started for suspects.
    expect(sandbox.supervisor.status().pids).to.have.lengthOf(2);
  });

  it('adds up on a tenant that ends hosts with ever new scripts, after a call and behind decoys', async () => {
    let over = false;
    const decoys = ['decoy a', 'decoy b'].map(async (tenant_id) => {
      const request = { tenant_id, script_version: 'one' };
      while (!over) await sandbox.result(script(computesFor(200)), request);
    });
    const killer = script(`await fetch('https://a.example/').catch(() => 0); ${abortsAfter(50)}`);
    const request = { tenant_id: 'killer', services: answering };
    for (let round = 0; round < 8; round += 1) await sandbox.result(killer, request);
    // From here on it runs alone: who has called out and waits beside it never notices.
    const waiting = script(
      `await fetch('https://b.example/').catch(() => 0);
       await new Promise((resolve) => setTimeout(resolve, 3_000)); return 'done';`,
    );
    const before = lost;
    const bystander = sandbox.result(waiting, { tenant_id: 'bystander', services: answering });
    for (let round = 0; round < 3; round += 1) await sandbox.result(killer, request);
    expect(lost).to.be.above(before);
    expect(await bystander).to.deep.equal(DONE);
    over = true;
    await Promise.all(decoys);
  });

  it('is on the scripts that hold too much together, each within its bound, before the host is lost', async () => {
    const grows = (index: number): string =>
      script(`const kept = []; /* ${index} */
        for (let mb = 0; mb < 105; mb += 1) {
          kept.push(new Uint8Array(1_000_000).fill(1));
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        return kept.length;`);
    const all = Array.from({ length: 12 }, (_item, index) =>
      sandbox.result(grows(index), { tenant_id: 'attacker' }),
    );
    const ended = await whileComputing('victim', 300, Promise.all(all));
    expect(new Set(ended.map(({ kind }) => kind))).to.deep.equal(new Set(['ok', 'memory']));
    expect(lost).to.equal(0);
  });

  it('keeps nobody waiting for long behind those who are known for it', async () => {
    const switching = script(
      `if (!req.args) { ${abortsAfter(0)} }
       await new Promise((resolve) => setTimeout(resolve, req.args)); return 'done';`,
    );
    const known = { tenant_id: 'known', script_version: 'one' };
    expect((await sandbox.result(switching, known)).kind).to.be.oneOf(['crashed', 'memory']);
    const sitting = sandbox.result(switching, { ...known, args: '15000' });
    const attacked = sandbox.result(script(abortsAfter(300)), { tenant_id: 'attacker' });
    const request = { tenant_id: 'victim', script_version: 'one', deadline_ms: 10_000 };
    let ended: ScriptResult;
    do ended = await sandbox.result(script(computesFor(600)), request);
    while (lost < 2 && ended.kind === 'ok');
    expect(ended).to.deep.equal(DONE);
    expect((await attacked).kind).to.be.oneOf(['crashed', 'memory']);
    expect(await sitting).to.deep.equal(DONE);
  });
});
