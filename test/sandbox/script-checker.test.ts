/** The checker of code that is about to be saved. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { createScriptChecker, type ScriptChecker } from '../../shared/sandbox/script-checker.ts';

describe('the checker of scripts', () => {
  let checker: ScriptChecker;
  before(() => {
    checker = createScriptChecker({ strict: false });
  });
  after(() => checker.close());

  for (const [what, source, expected] of [
    ['a function', 'module.exports = (req) => req;', { kind: 'ok' }],
    ['a module from the list', "require('url'); module.exports = () => 1;", { kind: 'ok' }],
    [
      'what does not compile',
      'module.exports = (req) => {\n  return 1 +;\n};',
      { kind: 'syntax', message: "SyntaxError: Unexpected token ';'", line: 2 },
    ],
    [
      'no function',
      'module.exports = 5;',
      { kind: 'type', message: 'module.exports must be a function.' },
    ],
    [
      'a module that is not there',
      "const nope = require('nope'); module.exports = () => nope;",
      { kind: 'unknown_module', module: 'nope' },
    ],
    [
      'code that throws when it is loaded',
      "throw new Error('no');",
      { kind: 'type', message: 'The code fails when it is loaded: no' },
    ],
    [
      'an endless load',
      'for (;;) {}',
      { kind: 'failed', message: 'The code does not finish loading within 5 seconds.' },
    ],
  ] as const) {
    it(`tells ${what}`, async () => {
      const checked = await checker.check(source);
      if ('message' in expected && checked.kind === 'syntax') {
        expect(checked.message).to.match(/Unexpected token/);
        expect(checked.line).to.equal(2);
      } else expect(checked).to.deep.equal(expected);
    });
  }

  it('goes on after code that ends its host', async () => {
    const bomb = 'const m = new Map(); for (let i = 0; ; i++) m.set(i, [i]);';
    const good = 'module.exports = () => 1;';
    expect((await checker.check(bomb)).kind).to.equal('failed');
    let checked = await checker.check(good);
    // The next host may still be starting.
    while (checked.kind === 'busy') checked = await checker.check(good);
    expect(checked).to.deep.equal({ kind: 'ok' });
  });

  it('ends its host when nobody asks for a while, and starts another for the next', async () => {
    const own = createScriptChecker({ strict: false, idle_ms: 1 });
    const before = hostsOfThisProcess();
    for (let round = 0; round < 2; round += 1) {
      expect(await own.check('module.exports = () => 1;')).to.deep.equal({ kind: 'ok' });
      while (hostsOfThisProcess() > before) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await own.close();
  });
});

/** 0 without /proc. */
function hostsOfThisProcess(): number {
  if (!existsSync('/proc/self/stat')) return 0;
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/status`, 'latin1').includes(`\nPPid:\t${process.pid}\n`);
    } catch {
      return false;
    }
  }).length;
}
