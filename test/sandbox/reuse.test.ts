/** Contexts that are kept for the next run of a script: what may stay there, and what must not. */
import { expect } from 'chai';
import type { ScriptService } from '../../shared/sandbox/script-services.ts';
import { fakeService, type Sandbox, startSandbox } from '../support/sandbox.ts';

const echo: ScriptService = async (request) => {
  const { body } = JSON.parse(request);
  return JSON.stringify({ status: 200, body: JSON.parse(body) });
};

describe('a script whose context is kept', () => {
  let sandbox: Sandbox;
  let versions = 0;
  before(async () => {
    sandbox = await startSandbox({ thread_count: 1 });
  });
  after(() => sandbox.supervisor.close());

  /** Runs one source as one version; `args` of each run. */
  const script = (source: string, services = {}) => {
    versions += 1;
    const script_version = `kept ${versions}`;
    return (args: unknown = null, more = {}) =>
      sandbox.supervisor.run({
        ...{ tenant_id: 'tenant', script_version, source, services, reuse: true },
        args: JSON.stringify(args),
        ...more,
      });
  };
  const okValue = async (ran: ReturnType<ReturnType<typeof script>>): Promise<unknown> => {
    const { result } = await ran;
    if (result.kind !== 'ok') throw new Error(JSON.stringify(result));
    return JSON.parse(result.value);
  };

  it('is loaded once and called again with other arguments', async () => {
    const run = script('let calls = 0; module.exports = (req) => [++calls, req.args, req.bt];');
    expect(await okValue(run('a'))).to.deep.equal([1, 'a', null]);
    expect(await okValue(run('b'))).to.deep.equal([2, 'b', null]);
    expect(await okValue(run('c', { reuse: false })), 'fresh').to.deep.equal([1, 'c', null]);
  });

  it('shares nothing with the same code of another tenant or version', async () => {
    const source = 'globalThis.seen ??= []; module.exports = (req) => seen.push(req.args);';
    const run = script(source);
    expect(await okValue(run(1))).to.equal(1);
    expect(await okValue(run(2))).to.equal(2);
    expect(await okValue(run(3, { tenant_id: 'other' }))).to.equal(1);
    expect(await okValue(run(4, { script_version: 'next' }))).to.equal(1);
  });

  it('is never entered by two runs at once', async () => {
    const run = script(`let inside = 0; module.exports = async (req) => {
      if (++inside > 1) throw new Error('two at once');
      await new Promise((resolve) => setTimeout(resolve, 20)); inside--; return req.args; };`);
    const all = Array.from({ length: 24 }, (_item, index) => index);
    for (let round = 0; round < 2; round += 1) {
      expect(await Promise.all(all.map((index) => okValue(run(index))))).to.deep.equal(all);
    }
  });

  it('does not hear of timers of an earlier run', async () => {
    const run = script(`module.exports = async (req) => {
      if (req.args === 1) { setTimeout(() => console.log('late'), 5); setInterval(() => console.log('tick'), 1); return 1; }
      await new Promise((resolve) => setTimeout(resolve, 60)); return 2; };`);
    expect(await okValue(run(1))).to.equal(1);
    const { result, console } = await run(2);
    expect([result, console]).to.deep.equal([{ kind: 'ok', value: '2' }, []]);
  });

  it('may have 100 timers in every run', async () => {
    const run = script(
      'module.exports = () => { for (let i = 0; i < 100; i++) setTimeout(() => {}, 9e5); return 1; };',
    );
    for (let round = 0; round < 3; round += 1) expect(await okValue(run())).to.equal(1);
  });

  it('has its whole console in every run', async () => {
    const run = script("module.exports = () => { console.log('x'.repeat(60e3)); };");
    for (let round = 0; round < 3; round += 1) {
      const { console } = await run();
      expect(console.map(({ text }) => text.length)).to.deep.equal([60_000]);
    }
  });

  it('does not hear of answers to calls of an earlier run, and may make all of its own', async () => {
    let answerLate = (_text: string): void => undefined;
    let isFirst = true;
    const service = fakeService((request, signal) => {
      if (!isFirst) return echo(request, signal);
      isFirst = false;
      return new Promise((resolve) => {
        answerLate = resolve;
      });
    });
    const run = script(
      `module.exports = async (req) => {
      if (req.args === 'first') { req.bt.detokenize('late').then((x) => console.log(x)); return 0; }
      answerNow = null; let ok = 0;
      for (let i = 0; i < 1000; i++) if (await req.bt.detokenize(i) === i) ok++;
      return ok; }; let answerNow;`,
      { bt: service.run },
    );
    expect(await okValue(run('first'))).to.equal(0);
    expect(service.aborted).to.equal(1);
    answerLate('{"status":200,"body":"late"}');
    const { result, console } = await run('second');
    expect([result, console]).to.deep.equal([{ kind: 'ok', value: '1000' }, []]);
    expect((await run('third')).result).to.deep.equal({ kind: 'ok', value: '1000' });
  });

  it('calls out with what the present run may, not an earlier one', async () => {
    const run = script(`let kept; module.exports = async (req) => {
      kept ??= req.bt;
      return [req.bt === null, await kept.detokenize(1).catch((e) => e.code)]; };`);
    const first = { bt: async () => '{"status":200,"body":"of the first"}' };
    const second = { bt: async () => '{"status":200,"body":"of the second"}' };
    expect(await okValue(run(0, { services: first }))).to.deep.equal([false, 'of the first']);
    expect(await okValue(run(0, { services: second }))).to.deep.equal([false, 'of the second']);
    expect(await okValue(run(0, { services: {} }))).to.deep.equal([true, 'NOT_AVAILABLE']);
  });

  it('cannot end a later run with what an earlier one left waiting', async () => {
    const run = script(`let open, free; module.exports = async (req) => {
      if (req.args === 1) {
        setTimeout(() => { throw new Error('ended by a timer'); }, 1);
        await new Promise((resolve) => { open = resolve; });
        return 'of the first';
      }
      open(); for (let i = 0; i < 9; i++) await null;
      return 'of the second'; };`);
    const { result } = await run(1);
    expect(result.kind === 'error' && result.error.errors.error).to.deep.equal([
      'ended by a timer',
    ]);
    expect(await okValue(run(2))).to.equal('of the second');
  });

  for (const [how, body] of [
    ['out of time', 'for (;;) {}'],
    ['waiting for nothing', 'await new Promise(() => {});'],
    ['with a result that is too large', "return 'x'.repeat(6e6);"],
  ] as const) {
    it(`begins anew after a run that ended ${how}`, async () => {
      const run = script(
        `let calls = 0; module.exports = async (req) => { calls++; if (req.args) { ${body} } return calls; };`,
      );
      expect(await okValue(run(false))).to.equal(1);
      expect((await run(true, { deadline_ms: 300 })).result.kind).not.to.equal('ok');
      expect(await okValue(run(false))).to.equal(1);
    });
  }

  it('begins anew after an answer with which it may not be kept', async () => {
    const secret = { asked: false };
    const bt: ScriptService = (request, signal) => {
      secret.asked ||= request.includes('secret');
      return echo(request, signal);
    };
    const run = script(
      `let last = 0; module.exports = async (req) => {
      const before = last; last = await req.bt.detokenize(req.args);
      await req.bt.detokenize('another').catch(() => 0); return before; };`,
      { bt },
    );
    const ran = (args: string) => {
      secret.asked = false;
      return okValue(run(args, { mayKeep: () => !secret.asked }));
    };
    expect(await ran('one')).to.equal(0);
    expect(await ran('a secret')).to.equal('one');
    expect(await ran('two')).to.equal(0);
    expect(await ran('three')).to.equal('two');
  });

  it('is kept after an error that it throws', async () => {
    const run = script(
      "let calls = 0; module.exports = (req) => { calls++; if (req.args) throw new Error('x'); return calls; };",
    );
    expect((await run(true)).result.kind).to.equal('error');
    expect(await okValue(run(false))).to.equal(2);
  });

  it('is loaded again when loading failed', async () => {
    const run = script("throw new Error('at load'); module.exports = () => 1;");
    for (let round = 0; round < 3; round += 1) {
      const { result } = await run();
      expect(result.kind === 'error' && result.error.errors.error).to.deep.equal(['at load']);
    }
  });

  it('has a bounded memory: it begins anew when it has hoarded too much', async () => {
    const run = script(
      'const kept = []; module.exports = () => { kept.push(new Array(4e6).fill(kept.length)); return kept.length; };',
    );
    // 32 MB each; far from 16 of them may stay.
    const kept: unknown[] = [];
    for (let round = 0; round < 16; round += 1) kept.push(await okValue(run()));
    expect(Math.max(...(kept as number[]))).to.be.below(4);
  });
});
