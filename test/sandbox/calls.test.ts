/** Calls out of scripts, carried out by services of the test. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { ScriptCallError, type ScriptService } from '../../shared/sandbox/script-services.ts';
import { besideNeighbour, fakeService, type Sandbox, startSandbox } from '../support/sandbox.ts';

const CALL = 'module.exports = (req) => req.bt.detokenize(req.args);';
const MAP_BOMB = 'const m = new Map(); for (let i = 0; ; i++) m.set(i, [i]);';
const echo: ScriptService = async (request) => {
  const { body } = JSON.parse(request);
  return JSON.stringify({ status: 200, body: JSON.parse(body) });
};
const never: ScriptService = () => new Promise(() => undefined);

describe('a script that calls out', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox({ thread_count: 2 });
  });
  after(() => sandbox.supervisor.close());

  it('gets the answer, whatever it and its values look like', async () => {
    const args = { text: 'é€😀"\\\u2028', list: [null, 1.5, {}], __proto__x: '</script>' };
    const value = await sandbox.value(CALL, {
      services: { bt: echo },
      args: JSON.stringify(args),
    });
    expect(value).to.deep.equal(args);
  });

  it('gets an error with message and code, and nothing of what else went wrong', async () => {
    const source = `module.exports = (req) => req.bt.detokenize({}).catch((error) =>
      [error.message, error.code ?? null, Object.keys(error).includes('stack')]);`;
    const refuse = async (): Promise<string> => {
      throw new ScriptCallError('Not today.', 'CLOSED');
    };
    expect(await sandbox.value(source, { services: { bt: refuse } })).to.deep.equal([
      ...['Not today.', 'CLOSED', false],
    ]);
    const fail = async (): Promise<string> => {
      throw new Error('password authentication failed');
    };
    expect(await sandbox.value(source, { services: { bt: fail } })).to.deep.equal([
      ...['The call failed.', null, false],
    ]);
  });

  it('has no client without the service', async () => {
    expect(await sandbox.value('module.exports = (req) => req.bt;')).to.equal(null);
  });

  it('may make 1,000 calls, 32 at a time; the others wait for their turn or fail', async () => {
    const service = fakeService(echo);
    const source = `module.exports = async (req) => {
      const all = Array.from({ length: 10000 }, (_, i) => req.bt.detokenize({ i }).then(({ i: j }) => i === j, (e) => e.code));
      const ends = await Promise.all(all);
      return [ends.filter((end) => end === true).length, ends.filter((end) => end === 'TOO_MANY_CALLS').length];
    };`;
    expect(await sandbox.value(source, { services: { bt: service.run } })).to.deep.equal([
      ...[1_000, 9_000],
    ]);
    expect(service.calls).to.equal(1_000);
    expect(service.openMost).to.be.within(2, 32);
  });

  it('keeps to its bounds when it has changed every prototype', async () => {
    const service = fakeService(echo);
    const source = `module.exports = async (req) => {
      const names = Object.getOwnPropertyNames;
      const seen = [];
      const spy = (owner) => names(owner).forEach((name) => {
        const { value } = Object.getOwnPropertyDescriptor(owner, name);
        if (typeof value !== 'function' || ['constructor', 'then', 'call', 'apply', 'bind'].includes(name)) return;
        owner[name] = function (...args) { for (const arg of args) if (typeof arg === 'function') seen[seen.length] = arg; return value.call(this, ...args); };
      });
      const first = await req.bt.detokenize({ a: 1 });
      spy(Map.prototype); spy(Array.prototype);
      let ok = 0, refused = 0;
      for (let i = 0; i < 1100; i++) await req.bt.detokenize({}).then(() => ok++, () => refused++);
      return [ok, refused, seen.some((f) => String(f).includes('native code') && f.length === 0 && f.name === '')];
    };`;
    const value = await sandbox.value(source, { services: { bt: service.run } });
    expect(value).to.deep.equal([999, 101, false]);
  });

  it('cannot send or get more than the bounds', async () => {
    const large = `module.exports = (req) => req.bt.detokenize('x'.repeat(9e6)).catch((e) => e.code);`;
    expect(await sandbox.value(large, { services: { bt: echo } })).to.equal('TOO_LARGE');
    const source = 'module.exports = (req) => req.bt.detokenize(1).catch((e) => e.code);';
    const flood = async (): Promise<string> => JSON.stringify('é'.repeat(9e6));
    expect(await sandbox.value(source, { services: { bt: flood } })).to.equal('TOO_LARGE');
  });

  it('may get an answer of 14 MiB', async () => {
    const source = 'module.exports = async (req) => (await req.bt.detokenize(1)).length;';
    const length = 14 * 1024 * 1024;
    const long = async () => JSON.stringify({ status: 200, body: 'x'.repeat(length) });
    expect(await sandbox.value(source, { services: { bt: long } })).to.equal(length);
  });

  for (const [how, body, kind] of [
    ['has its value', 'req.bt.detokenize(1); return 1;', 'ok'],
    ['throws', "req.bt.detokenize(1); throw new Error('x');", 'error'],
    ['is out of time', 'await req.bt.detokenize(1);', 'timeout'],
    ['loops without end', 'req.bt.detokenize(1); for (;;) {}', 'timeout'],
    ['loops without end later', 'req.bt.detokenize(1); await 0; for (;;) {}', 'timeout'],
  ] as const) {
    it(`leaves no call behind when it ${how}`, async () => {
      const service = fakeService(never);
      const source = `module.exports = async (req) => { ${body} };`;
      const ended = await besideNeighbour(sandbox, () =>
        sandbox.result(source, { services: { bt: service.run }, deadline_ms: 400 }),
      );
      expect(ended.kind).to.equal(kind);
      // One that loops from the start may be ended before its call has left the thread.
      expect(service.aborted).to.equal(service.calls);
    });
  }

  it('has a bounded time for what it does with an answer', async () => {
    const source = 'module.exports = async (req) => { await req.bt.detokenize(1); for (;;) {} };';
    const ended = await besideNeighbour(sandbox, () =>
      sandbox.result(source, { services: { bt: echo }, deadline_ms: 500 }),
    );
    expect(ended.kind).to.equal('timeout');
  });

  it('does not hear of answers that come after its end', async () => {
    let answer = (_text: string): void => undefined;
    const late: ScriptService = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const source = `module.exports = (req) => {
      req.bt.detokenize(1).then(() => console.log('heard')); return 1; };`;
    const { result, console } = await sandbox.run(source, { services: { bt: late } });
    answer('{"status":200}');
    expect(result.kind).to.equal('ok');
    expect(await sandbox.value(CALL, { services: { bt: echo }, args: '2' })).to.equal(2);
    expect(console).to.deep.equal([]);
  });

  it('waits beside as many others as a tenant may have, without much memory', async () => {
    const all = 100;
    let rss_mb = 0;
    const together: (() => void)[] = [];
    const barrier: ScriptService = () =>
      new Promise((resolve) => {
        together.push(() => resolve('{"status":200,"body":1}'));
        if (together.length < all) return;
        rss_mb = Math.max(...sandbox.supervisor.status().pids.map(residentMb));
        for (const settle of together) settle();
      });
    const script = { tenant_id: 'waiting', script_version: '1', source: CALL };
    const runs = Array.from({ length: all }, () =>
      sandbox.supervisor.run({ ...script, services: { bt: barrier } }),
    );
    const kinds = (await Promise.all(runs)).map(({ result }) => result.kind);
    expect(new Set(kinds)).to.deep.equal(new Set(['ok']));
    expect(rss_mb).to.be.below(400);
  });

  it('holds no thread of others while it waits', async () => {
    const tenants = ['a', 'b', 'c', 'd', 'e', 'f'];
    const together: (() => void)[] = [];
    const barrier: ScriptService = () =>
      new Promise((resolve) => {
        together.push(() => resolve('{"status":200,"body":1}'));
        if (together.length === tenants.length) for (const settle of together) settle();
      });
    const results = await Promise.all(
      tenants.map((tenant_id) =>
        sandbox.result(CALL, { tenant_id, services: { bt: barrier }, deadline_ms: 10_000 }),
      ),
    );
    for (const result of results) expect(result).to.deep.equal({ kind: 'ok', value: '1' });
  });

  it('may wait for a run of its own tenant, however many do so', async () => {
    const nesting = await startSandbox({
      ...{ thread_count: 1, tenant_running_max: 1, tenant_started_max: 4 },
    });
    const inner = 'module.exports = () => 5;';
    const nested: ScriptService = async () => {
      const ended = await nesting.result(inner, { nested: true });
      return JSON.stringify({ status: 200, body: ended.kind });
    };
    const runs = Array.from({ length: 12 }, () =>
      nesting.value(CALL, { services: { bt: nested } }),
    );
    expect(new Set(await Promise.all(runs))).to.deep.equal(new Set(['ok']));
    await nesting.supervisor.close();
  });
});

describe('a script that has called out', () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox({ thread_count: 3 });
  });
  afterEach(() => sandbox.supervisor.close());

  it('is not run again when its host is lost; one that has not is', async () => {
    // One thread and one script: the bystander has begun, and waits, when the other one calls out.
    const single = await startSandbox({ thread_count: 1 });
    const source = `module.exports = (req) => req.args.calls
      ? req.bt.detokenize(1) : new Promise((r) => setTimeout(() => r("done"), 3_000));`;
    const [serving] = single.supervisor.status().pids;
    let called = (): void => undefined;
    const calling = new Promise<void>((resolve) => {
      called = resolve;
    });
    const service = fakeService(() => {
      called();
      return new Promise(() => undefined);
    });
    const run = (calls: boolean) =>
      single.result(source, { services: { bt: service.run }, args: JSON.stringify({ calls }) });
    const bystander = run(false);
    const waiting = run(true);
    await calling;
    // Twice, so that the host has said since that another one holds the thread: the caller only waits.
    const computing = `module.exports = () => {
      for (const end = Date.now() + 50; Date.now() < end; );
      return 1;
    };`;
    for (const _ of [1, 2]) await single.value(computing);
    process.kill(serving as number, 'SIGKILL');
    expect(await waiting).to.deep.equal({ kind: 'interrupted' });
    expect(await bystander).to.deep.equal({ kind: 'ok', value: '"done"' });
    expect([service.calls, service.aborted]).to.deep.equal([1, 1]);
    await single.supervisor.close();
  });

  it('is not run again when it may have ended its host', async () => {
    const service = fakeService(echo);
    const source = `module.exports = async (req) => { await req.bt.detokenize(1); ${MAP_BOMB} };`;
    const results = await Promise.all(
      ['a', 'b'].map((tenant_id) =>
        sandbox.result(source, { tenant_id, services: { bt: service.run } }),
      ),
    );
    for (const { kind } of results) {
      expect(kind).to.be.oneOf(['crashed', 'interrupted', 'memory']);
    }
    expect(service.calls).to.equal(2);
  });

  it('is answered when the supervisor closes', async () => {
    let called = (): void => undefined;
    const calling = new Promise<void>((resolve) => {
      called = resolve;
    });
    const service = fakeService(() => {
      called();
      return new Promise(() => undefined);
    });
    const waiting = sandbox.result(CALL, { services: { bt: service.run } });
    await calling;
    await sandbox.supervisor.close();
    expect(await waiting).to.deep.equal({ kind: 'interrupted' });
    expect(service.aborted).to.equal(1);
  });
});

/** 0 without /proc. */
function residentMb(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(text)?.[1]) / 1024;
  } catch {
    return 0;
  }
}
