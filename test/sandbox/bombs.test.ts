/** Scripts that eat time or memory (attacks C-12). Each ends for its own caller, and for nobody else. */
import { expect } from 'chai';
import { ScriptCallError } from '../../shared/sandbox/script-services.ts';
import { BOMBS } from '../support/bombs.ts';
import { besideNeighbour, fakeService, type Sandbox, startSandbox } from '../support/sandbox.ts';

/** Long enough for V8 to end what it can end, short enough for a suite of bombs. */
const DEADLINE_MS = 1_000;
const RSS_BYTES_MAX = 768 * 1024 * 1024;

describe('a script that eats time or memory', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox({ rss_bytes_max: RSS_BYTES_MAX });
  });
  after(() => sandbox.supervisor.close());

  for (const [name, body, kinds] of BOMBS) {
    it(`ends alone: ${name}`, async () => {
      const source = `module.exports = async function (req) { ${body} };`;
      // What must not end by the clock has the time it needs on a busy machine.
      const deadline_ms = kinds.includes('timeout') ? DEADLINE_MS : 10 * DEADLINE_MS;
      const ended = await besideNeighbour(sandbox, () =>
        // A tenant of its own each: one with many bombs is in quarantine as a whole.
        sandbox.result(source, { tenant_id: `tenant with ${name}`, deadline_ms }),
      );
      expect(ended.kind).to.be.oneOf([...kinds]);
      if (ended.kind === 'error') {
        for (const messages of Object.values(ended.error.errors)) {
          for (const message of messages) expect(message.length).to.be.at.most(1024);
        }
      }
    });
  }

  it('has neither WebAssembly nor shared memory to eat with', async () => {
    const source = `module.exports = () =>
      [typeof WebAssembly, typeof SharedArrayBuffer, typeof Atomics];`;
    const gone = ['undefined', 'undefined', 'undefined'];
    expect(await sandbox.value(source)).to.deep.equal(gone);
    const wait = 'module.exports = () => Atomics.wait(new Int32Array(4), 0, 0);';
    const ended = await sandbox.result(wait);
    expect(ended.kind === 'error' && ended.error.errors.error?.[0]).to.match(
      /Atomics is not defined/,
    );
  });

  it('floods the console, of which 64 KiB are kept', async () => {
    const source = `module.exports = () => {
      for (let i = 0; i < 20000; i++) console.log('line', i, 'x'.repeat(100)); return 1; };`;
    const { result, console } = await besideNeighbour(sandbox, () => sandbox.run(source));
    expect(result.kind).to.equal('ok');
    const bytes = console.reduce((sum, { text }) => sum + Buffer.byteLength(text) + 1, 0);
    expect(bytes).to.be.within(60 * 1024, 64 * 1024);
  });

  it('runs again after it was stopped, with other arguments, and ends well', async () => {
    const script = {
      script_version: 'sometimes',
      source: 'module.exports = (req) => { while (req.args.loop) {} return 1; };',
      tenant_id: 'tenant',
    };
    const stuck = await sandbox.supervisor.run({
      ...script,
      args: '{"loop":true}',
      deadline_ms: 300,
    });
    expect(stuck.result).to.deep.equal({ kind: 'timeout', limit: 'run', limit_ms: 300 });
    const good = await sandbox.supervisor.run({ ...script, args: '{"loop":false}' });
    expect(good.result).to.deep.equal({ kind: 'ok', value: '1' });
  });

  it('makes 10,000 fetches, of which 50 are carried out, 10 at a time', async () => {
    const service = fakeService(async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      throw new ScriptCallError('No such server.', 'ENOTFOUND');
    });
    const source = `module.exports = async () => {
      const ends = {};
      const one = async (i) => { try { await fetch('https://host' + i + '.example/'); } catch (e) { ends[e.name] = (ends[e.name] ?? 0) + 1; } };
      await Promise.all(Array.from({ length: 10000 }, (_, i) => one(i)));
      return Object.values(ends).reduce((sum, count) => sum + count);
    };`;
    const value = await besideNeighbour(sandbox, () =>
      sandbox.value(source, { services: { fetch: service.run } }),
    );
    expect([value, service.calls, service.openMost]).to.deep.equal([10_000, 50, 10]);
  });

  it('is called by 500 callers of one tenant at once, of whom most are told that it is busy', async function () {
    this.timeout(120_000);
    const source = 'module.exports = () => Array(1e9).fill(0);';
    const script = { tenant_id: 'tenant', script_version: '500 callers', source };
    const attack = (): Promise<string[]> =>
      Promise.all(
        Array.from({ length: 500 }, async () => {
          const { result } = await sandbox.supervisor.run({ ...script, deadline_ms: 3_000 });
          return result.kind === 'busy' ? `busy ${result.scope}` : result.kind;
        }),
      );
    const kinds = new Set(await besideNeighbour(sandbox, attack));
    expect([...kinds]).to.include('busy tenant');
    expect(['busy tenant', 'timeout', 'memory', 'crashed', 'error']).to.include.members([...kinds]);
  });
});
