/** A tenant that is hostile as a whole: many scripts, large arguments, traces left for whoever comes next. */
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { findIsolation } from '../../shared/sandbox/host-command.ts';
import { HostSet } from '../../shared/sandbox/host-set.ts';
import { ensureModuleBundles } from '../../shared/sandbox/modules/ensure-module-bundles.ts';
import { besideNeighbour, fakeService, type Sandbox, startSandbox } from '../support/sandbox.ts';

const ABORTS =
  'module.exports = () => { const m = new Map(); for (let i = 0; ; i++) m.set(i, [i]); };';
const CALLS = "module.exports = () => fetch('https://a.example/').then(() => 1, () => 1);";

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes of this process' own heap and of buffers, without garbage. */
function used(): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

describe('a hostile tenant', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  /** How many of four runs of a harmless script were under way at the same time. */
  async function together(tenant_id: string): Promise<number> {
    const fetch = fakeService(async () => {
      await new Promise((resolve) => setTimeout(resolve, 150));
      return '{}';
    });
    const run = () => sandbox.result(CALLS, { tenant_id, services: { fetch: fetch.run } });
    const ended = await Promise.all([run(), run(), run(), run()]);
    expect(ended.map(({ kind }) => kind)).to.deep.equal(['ok', 'ok', 'ok', 'ok']);
    return fetch.openMost;
  }

  it('has neighbours no more when its scripts ended three hosts, each of them new', async () => {
    const tenant_id = 'killer';
    expect(await together(tenant_id)).to.equal(4);
    for (let script = 0; script < 3; script += 1) {
      const ended = await besideNeighbour(sandbox, () => sandbox.result(ABORTS, { tenant_id }));
      expect(ended.kind).to.be.oneOf(['crashed', 'memory']);
    }
    // Other hosts are ready again, so that it is not for want of them.
    while (sandbox.supervisor.status().ready_count < 3) await new Promise((r) => setTimeout(r, 10));
    expect(await together(tenant_id)).to.equal(1);
    expect(await together('other')).to.equal(4);
    for (let script = 0; script < 3; script += 1) {
      await besideNeighbour(sandbox, () => sandbox.result(ABORTS, { tenant_id }));
    }
  }).timeout(120_000);

  it('holds 64 MiB of arguments at most, however many of its runs wait', async () => {
    const args = JSON.stringify('x'.repeat(10 * 1024 * 1024));
    const source = 'module.exports = () => new Promise((end) => setTimeout(() => end(1), 1_500));';
    const attack = () =>
      Promise.all(
        Array.from({ length: 9 }, async () => {
          const ended = await sandbox.result(source, { tenant_id: 'large', args });
          return ended.kind === 'busy' ? `busy ${ended.scope}` : ended.kind;
        }),
      );
    const kinds = await besideNeighbour(sandbox, attack);
    expect(kinds.filter((kind) => kind === 'busy tenant')).to.have.length(3);
    expect(kinds.filter((kind) => kind === 'ok')).to.have.length(6);
    const again = await sandbox.result('module.exports = () => 1;', { tenant_id: 'large', args });
    expect(again.kind).to.equal('ok');
  }).timeout(60_000);

  it('does not make us keep its arguments twice while it computes and takes none of them', async () => {
    await using one = await startSandbox({ thread_count: 1, spares: false });
    const version = { tenant_id: 'large', script_version: '1' };
    const source = 'module.exports = ({ args }) => { while (args === null); return 1; };';
    const computing = one.result(source, { ...version, deadline_ms: 1_500 });
    await delay(200);
    collect();
    const before = process.memoryUsage().arrayBuffers;
    const args = JSON.stringify('x'.repeat(5 * 1024 * 1024));
    const waiting = Array.from({ length: 10 }, () => one.result(source, { ...version, args }));
    await delay(300);
    collect();
    const more = process.memoryUsage().arrayBuffers - before;
    // One of them is on its way, and what the pipe itself holds.
    expect(more / args.length).to.be.lessThan(2);
    expect((await computing).kind).to.equal('timeout');
    const kinds = (await Promise.all(waiting)).map(({ kind }) => kind);
    expect(kinds).to.deep.equal(kinds.map(() => 'ok'));
  }).timeout(30_000);

  it('does not make us keep the arguments of runs whose time was over behind one that computes', async () => {
    await using one = await startSandbox({ thread_count: 1, spares: false });
    const request = { tenant_id: 'large', script_version: '1' };
    const source = 'module.exports = ({ args }) => { while (args === null); return 1; };';
    const computing = one.result(source, { ...request, deadline_ms: 4_000 });
    const before = used();
    for (let times = 0; times < 4; times += 1) {
      const runs = Array.from({ length: 6 }, (_, index) => {
        const args = JSON.stringify(`${times}${index}`.repeat(4 * 1024 * 1024));
        return one.result(source, { ...request, args, deadline_ms: 300 });
      });
      expect(new Set((await Promise.all(runs)).map(({ kind }) => kind))).to.deep.equal(
        new Set(['timeout']),
      );
    }
    // 192 MiB in all; one of them is on its way.
    expect(used() - before).to.be.lessThan(60 * 1024 * 1024);
    expect((await computing).kind).to.equal('timeout');
    expect(await one.value(source, { ...request, args: '1' })).to.equal(1);
  }).timeout(30_000);

  it('does not make us keep those of runs that began, and whose time was over as another computes', async () => {
    await using one = await startSandbox({ thread_count: 1, spares: false });
    const before = used();
    const begun = Array.from({ length: 6 }, (_, index) =>
      one.result('module.exports = () => new Promise((end) => setTimeout(end, 2_000));', {
        ...{ tenant_id: 'large', script_version: '1', deadline_ms: 1_500 },
        args: JSON.stringify(String(index).repeat(9 * 1024 * 1024)),
      }),
    );
    await delay(700);
    // Its thread does not get to end them.
    const computing = one.result('module.exports = () => { for (;;); };', {
      ...{ tenant_id: 'large', deadline_ms: 5_000 },
    });
    expect((await Promise.all(begun)).map(({ kind }) => kind)).to.deep.equal(
      begun.map(() => 'timeout'),
    );
    expect(used() - before).to.be.lessThan(40 * 1024 * 1024);
    expect((await computing).kind).to.equal('timeout');
  }).timeout(30_000);

  it('loses its host when it goes on after its time, though we were held up ourselves meanwhile', async () => {
    await using one = await startSandbox({ thread_count: 1, spares: false });
    // One call of a built-in, which no time limit interrupts.
    const source = "module.exports = () => 'a'.repeat(1e7).lastIndexOf('a'.repeat(4e6) + 'b');";
    const endless = one.result(source, { deadline_ms: 300 });
    await nextTurn();
    await nextTurn();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
    expect((await endless).kind).to.equal('timeout');
    const other = { tenant_id: 'other', deadline_ms: 10_000 };
    expect(await one.value('module.exports = () => 1;', other)).to.equal(1);
  }).timeout(30_000);

  it('holds no thread with code that takes long to compile and comes too late', async () => {
    await using two = await startSandbox({ thread_count: 2, spares: false });
    // Nine seconds for V8's compiler, which no time limit ends.
    const deep = Array.from({ length: 5_000 }, (_, index) => `{let a${index};`).join('');
    const long = `${deep}${'x;'.repeat(440_000)}${'}'.repeat(5_000)}`;
    const bomb = { tenant_id: 'bad', deadline_ms: 1_500 };
    const computing = two.result('module.exports = () => { for (;;); };', bomb);
    const late = Array.from({ length: 3 }, () =>
      two.result(long, { tenant_id: 'bad', deadline_ms: 500 }),
    );
    expect((await Promise.all(late)).map(({ kind }) => kind)).to.deep.equal(
      late.map(() => 'timeout'),
    );
    expect((await computing).kind).to.equal('timeout');
    const others = Array.from({ length: 4 }, (_, index) =>
      two.result('module.exports = () => new Promise((end) => setTimeout(() => end(1), 200));', {
        ...{ tenant_id: `other ${index}`, deadline_ms: 5_000 },
      }),
    );
    expect((await Promise.all(others)).map(({ kind }) => kind)).to.deep.equal(
      others.map(() => 'ok'),
    );
  }).timeout(60_000);

  /** [where it leaves a trace, how, and what it would find of it]. */
  const TRACES: readonly [string, string, string][] = [
    ['a global', 'globalThis.left = 1', 'globalThis.left'],
    ['a built-in', 'Array.prototype.left = 1', '[].left'],
    ['JSON', 'JSON.left = 1', 'JSON.left'],
    ['fetch', 'globalThis.fetch = Object.assign(() => 1, { left: 1 })', 'fetch.left'],
    [
      'listeners of process',
      "process.on('left', () => 1)",
      "process.listenerCount('left') || undefined",
    ],
    ['the environment of process', 'process.env.left = 1', 'process.env.left'],
    [
      'the agent of https',
      "require('https').globalAgent.left = 1",
      "require('https').globalAgent.left",
    ],
    ['crypto', "require('crypto').left = 1", "require('crypto').left"],
    ['web crypto', 'crypto.subtle.left = 1', 'crypto.subtle.left'],
    ['lodash', "require('lodash').left = 1", "require('lodash').left"],
    [
      'defaults of axios',
      "require('axios').defaults.headers.left = 1",
      "require('axios').defaults.headers.left",
    ],
    [
      'the error classes',
      "require('@basis-theory/basis-theory-reactor-formulas-sdk-js').left = 1",
      "require('@basis-theory/basis-theory-reactor-formulas-sdk-js').left",
    ],
    ['stack traces', 'Error.stackTraceLimit = 77', 'Error.stackTraceLimit === 77 || undefined'],
    ['the last pattern', '/(left)/.exec("left")', 'RegExp.$1 || undefined'],
    ['symbols', "Symbol.for('left').constructor.left = 1", 'Symbol.left'],
    ['the exports of its own module', 'module.exports.left = 1', 'module.exports.left'],
    ['require', 'require.left = 1', 'require.left'],
    ['a timer', 'setTimeout(() => { globalThis.left = 1; }, 0)', 'globalThis.left'],
    ['a template', 'String.raw.left = 1', 'String.raw.left'],
  ];
  for (const [where, leave, find] of TRACES) {
    it(`finds nothing of its last run in ${where}`, async () => {
      const source = `module.exports = async () => { const found = ${find}; ${leave}; return typeof found; };`;
      const script = { tenant_id: 'traces', script_version: where, source };
      for (let run = 0; run < 4; run += 1) {
        const { result } = await sandbox.supervisor.run(script);
        expect(result).to.deep.equal({ kind: 'ok', value: '"undefined"' });
      }
    });
  }

  it('that keeps its contexts hears in no run of work that an earlier one left', async () => {
    const script = {
      ...{ tenant_id: 'kept', script_version: '1', reuse: true },
      source: `module.exports = async (req) => {
        if (req.args === 'first') {
          require('crypto').randomBytes(8, () => console.log('late bytes'));
          require('crypto').pbkdf2('a', 'b', 1, 8, 'sha256', () => console.log('late key'));
          process.nextTick(() => console.log('late tick'));
          fetch('https://a.example/').then(() => console.log('late fetch'), () => console.log('late error'));
          require('https').get('https://a.example/', () => console.log('late response')).on('error', () => console.log('late error'));
          AbortSignal.timeout(5).addEventListener('abort', () => console.log('late abort'));
          return 1;
        }
        await new Promise((end) => setTimeout(end, 100)); return 2; };`,
      services: { fetch: () => new Promise<string>((end) => setTimeout(() => end('{}'), 20)) },
    };
    await sandbox.supervisor.run({ ...script, args: '"first"' });
    const { result, console } = await sandbox.supervisor.run({ ...script, args: '"second"' });
    expect([result, console]).to.deep.equal([{ kind: 'ok', value: '2' }, []]);
  });
});

describe('the hosts of a machine', () => {
  it('have their spare for tenants, never for the quarantine', async () => {
    const nothing = (): void => undefined;
    const hosts = new HostSet({
      ...{ isolation: findIsolation(), modules_folder: await ensureModuleBundles() },
      ...{ slot_count: 1, spares: true, thread_count: 1, rss_bytes_max: 1e9 },
      ...{ onResult: nothing, onCall: nothing, onLost: nothing },
    });
    await hosts.start();
    try {
      const [spare, quarantine, slot] = [hosts.at('spare'), hosts.quarantine(), hosts.at(0)];
      quarantine?.kill('ended');
      await quarantine?.exited;
      expect(hosts.at('spare') === spare).to.equal(true);
      expect([quarantine, spare].includes(hosts.quarantine())).to.equal(false);
      slot?.kill('ended');
      await slot?.exited;
      expect(hosts.at(0) === spare).to.equal(true);
    } finally {
      await hosts.close();
    }
  });
});
