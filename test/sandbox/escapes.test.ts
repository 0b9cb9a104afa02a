/**
 * Scripts that look for a way out (attacks C-11), each a hundred times, side by side in one isolate. None
 * may reach an object, file or frame of the host, in no run of them.
 */
import { expect } from 'chai';
import type { ScriptResult } from '../../shared/sandbox/protocol.ts';
import type { ScriptRequest } from '../../shared/sandbox/supervisor.ts';
import { besideNeighbour, type Sandbox, startSandbox } from '../support/sandbox.ts';

/** Within what a tenant may have waiting (128). */
const RUNS = 100;

const REACHES = `const reach = (value) => {
  try {
    const F = value.constructor.constructor;
    return F('return typeof process.binding + typeof process.mainModule + typeof process.exit + typeof process.kill'
      + ' + Object.keys(process.env).length + typeof require + typeof module + typeof native')();
  } catch (error) { return 'threw'; }
};`;
/** The `process` that there is was made up inside: it can do nothing and knows nothing. */
const NOTHING = 'undefinedundefinedundefinedundefined0undefinedundefinedundefined';

/** Expressions whose constructor's constructor must only know the isolate's own globals. */
const ROOTS = [
  ...['this ?? globalThis', 'req', 'req.args', 'req.args.list', 'req.configuration', 'console'],
  ...['console.log', 'new Error()', 'Promise.resolve()', '[][Symbol.iterator]()', 'require'],
  ...['module', 'setTimeout', 'Buffer.from("a")', 'new URL("https://a.example")', 'URL'],
  ...['require("url")', 'require("events")', 'require("util").inspect', 'async () => {}'],
  ...[
    'new URLSearchParams("a=b")',
    'new TextEncoder()',
    'structuredClone({ a: [] })',
    'function* () {}',
  ],
];

const REFUSED_MODULES = [
  ...['fs', 'child_process', 'worker_threads', 'net', 'vm', 'v8', 'isolated-vm', 'piscina'],
  ...['node:fs', 'node:v8', '../host.ts', './isolate.ts', '/etc/passwd', 'file:///etc/passwd'],
  ...[
    'data:text/javascript,1',
    'constructor',
    '__proto__',
    'toString',
    'start',
    'errors-to-result',
  ],
  ...['url/', 'URL', ' url', 'node:@basis-theory/basis-theory-reactor-formulas-sdk-js', ''],
];

describe('a script that looks for a way out', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  let versions = 0;
  /** How all runs of one script version ended, which must be the same. */
  async function resultOfAll(source: string, more: Partial<ScriptRequest>): Promise<ScriptResult> {
    versions += 1;
    const script = { tenant_id: 'tenant', script_version: `way out ${versions}`, source, ...more };
    const runs = await besideNeighbour(sandbox, () =>
      Promise.all(Array.from({ length: RUNS }, () => sandbox.supervisor.run(script))),
    );
    const [first, ...others] = runs.map(({ result }) => result);
    for (const other of others) expect(other).to.deep.equal(first);
    return first as ScriptResult;
  }

  async function value(body: string, args = '{"list":[1]}'): Promise<unknown> {
    const source = `module.exports = async function (req) { ${body} };`;
    const ended = await resultOfAll(source, { args, configuration: '{"KEY":"value"}' });
    if (ended.kind !== 'ok') throw new Error(`the script ended with ${JSON.stringify(ended)}`);
    return JSON.parse(ended.value);
  }

  for (const root of ROOTS) {
    it(`finds only the isolate behind ${root}`, async () => {
      expect(await value(`${REACHES} return reach(${root});`)).to.equal(NOTHING);
    });
  }

  it('finds only the isolate behind an error that the host caused', async () => {
    const body = `${REACHES} try { new URL('no url'); } catch (error) { return reach(error); }`;
    expect(await value(body)).to.equal(NOTHING);
  });

  it('finds only the isolate in a stack overflow inside a host call', async () => {
    const body = `${REACHES}
      let caught, depth = 0, most = 0, from = Infinity;
      const deeper = () => {
        depth += 1;
        most = Math.max(most, depth);
        // Each call takes longer, the deeper the stack is: only the last ones are of interest.
        try { if (depth > from) new URL('https://a.example'); deeper(); } catch (error) { caught ??= error; }
        depth -= 1;
      };
      deeper();
      caught = undefined; from = most - 1_000;
      deeper(); return caught instanceof RangeError ? reach(caught) : 'no overflow';`;
    expect(await value(body)).to.equal(NOTHING);
  });

  for (const use of [
    "new URL('https://a.example')",
    "require('crypto').randomUUID()",
    'new Headers()',
  ]) {
    it(`may first use ${use} where its stack ends, and again later`, async () => {
      const body = `let tries = 0;
        const deeper = () => { try { deeper(); } catch (error) { if (tries++ < 40) ${use}; throw error; } };
        try { deeper(); } catch {}
        ${use}; return 'used';`;
      expect(await value(body)).to.equal('used');
    });
  }

  for (const name of REFUSED_MODULES) {
    it(`cannot require ${JSON.stringify(name)}`, async () => {
      const body = `try { require(${JSON.stringify(name)}); return 'loaded'; }
        catch (error) { return error.code; }`;
      expect(await value(body)).to.equal('MODULE_NOT_FOUND');
    });
  }

  for (const name of [{ a: 1 }, ['url'], null, 1]) {
    it(`cannot require ${JSON.stringify(name)}`, async () => {
      const body = `try { require(${JSON.stringify(name)}); return 'loaded'; }
        catch (error) { return error.code; }`;
      expect(await value(body)).to.equal('MODULE_NOT_FOUND');
    });
  }

  it('is not fooled by a name that changes while it is read', async () => {
    const body = `let reads = 0; const name = { toString: () => (reads++ === 0 ? 'url' : 'start') };
      try { require(name); return 'loaded'; } catch (error) { return error.code; }`;
    expect(await value(body)).to.equal('MODULE_NOT_FOUND');
  });

  it('cannot import', async () => {
    const body = `return Promise.allSettled([import('fs'), import('node:fs'), import('data:text/javascript,1')])
      .then((all) => all.map(({ status }) => status));`;
    expect(await value(body)).to.deep.equal(['rejected', 'rejected', 'rejected']);
    const meta = await sandbox.result('module.exports = () => import.meta.url;');
    expect(meta.kind).to.equal('syntax');
  });

  it('finds no handle of the host in its globals', async () => {
    const body = `
      const seen = new Set(), found = [];
      const walk = (object, path, depth) => {
        if ((typeof object !== 'object' && typeof object !== 'function') || object === null) return;
        if (seen.has(object) || depth > 5) return;
        seen.add(object);
        for (const key of Reflect.ownKeys(object)) {
          const at = path + '.' + String(key);
          if (/applySync|derefInto|copySync|evalSync|_ivm|isolated/i.test(String(key))) found.push(at);
          const descriptor = Reflect.getOwnPropertyDescriptor(object, key);
          for (const value of [descriptor.value, descriptor.get, descriptor.set]) walk(value, at, depth + 1);
        }
        walk(Reflect.getPrototypeOf(object), path + '.__proto__', depth + 1);
      };
      walk(globalThis, 'globalThis', 0); walk(req, 'req', 0); walk(require, 'require', 0);
      walk(module, 'module', 0); walk(console, 'console', 0);
      return { found, walked: seen.size > 200 };`;
    expect(await value(body)).to.deep.equal({ found: [], walked: true });
  });

  it('sees no frame of the host in a stack, whatever it does with stack traces', async () => {
    const body = `Error.prepareStackTrace = (_error, sites) =>
        sites.map((site) => String(site.getFileName()) + typeof site.getThis() + typeof site.getFunction());
      Error.stackTraceLimit = 100;
      return new Error().stack;`;
    const frames = (await value(body)) as string[];
    expect(frames.join()).not.to.match(/\.ts|\.cjs|node:|file:|node_modules/);
    const ours = frames.filter((frame) => !frame.startsWith('script.js'));
    expect(ours).not.to.have.length(0);
    // Neither the receiver nor the function: strict code shows neither.
    for (const frame of ours) expect(frame).to.match(/undefinedundefined$/);
  });

  it('breaks only its own world by changing built-ins', async () => {
    const body = `
      JSON.stringify = () => 'broken'; JSON.parse = () => 'broken';
      Promise.prototype.then = () => 'broken'; globalThis.Promise = undefined;
      Reflect.apply = () => 'broken'; Array.prototype.push = () => { throw 1; };
      Function.prototype.call = Function.prototype.apply = () => 'broken';
      Object.defineProperty = () => { throw 1; }; Map.prototype.get = () => 'broken';
      RegExp.prototype.exec = () => { throw 1; }; String.prototype.slice = () => 'broken';
      return { right: true };`;
    expect(await value(body)).to.deep.equal({ right: true });
    expect(await value('return JSON.stringify([1]) + typeof Promise;')).to.equal('[1]function');
  });

  it('cannot put members on what the host reads', async () => {
    const body = `Object.prototype.status = 201; Object.prototype.kind = 'busy';
      Object.prototype.toJSON = undefined; Array.prototype.toJSON = undefined;
      return JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');`;
    const answer = await value(body);
    expect(Object.keys(answer as object)).to.deep.equal(['__proto__', 'constructor']);
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined);
  });

  it('has its proxies read as plain JSON, with nothing called outside', async () => {
    const body = `
      const trap = new Proxy({}, { get: (_t, name) => name === 'then' || name === 'toJSON' ? undefined : trap,
        ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }),
        getPrototypeOf: () => Array.prototype, has: () => true });
      return { trap: { ...trap } && Object.keys(trap) };`;
    expect(await value(body)).to.deep.equal({ trap: ['a'] });
  });

  for (const thrown of [
    'new Proxy({}, { get() { throw new Proxy({}, {}); }, getPrototypeOf() { throw 1; } })',
    '{ get name() { throw 1; }, get message() { throw 1; } }',
    'Object.assign(new Error("a"), { get cause() { throw 1; } })',
    '(() => { const e = new Error("a"); e.cause = e; return e; })()',
    'new AggregateError([new Error("a"), null], "b")',
    'null',
    'undefined',
    '"text"',
    'Symbol("s")',
    '10n',
    '{ name: "BadRequestError", errors: { a: { then() {} } } }',
    '{ name: "BadRequestError", errors: { __proto__: null, ["__proto__"]: ["x"] } }',
    '{ name: "CustomHttpResponseError", status: "200; evil", headers: { "a\\r\\nb": "c" } }',
    '{ name: "CustomHttpResponseError", status: 200, headers: { a: "c\\r\\nset-cookie: x" } }',
    '{ name: "toString" }',
  ]) {
    it(`has a documented error of its own when it throws ${thrown}`, async () => {
      const source = `module.exports = async () => { throw ${thrown}; };`;
      const ended = await resultOfAll(source, {});
      if (ended.kind !== 'error') throw new Error(`it ended as ${ended.kind}`);
      expect(ended.error.status).to.be.oneOf([400, 500]);
      for (const messages of Object.values(ended.error.errors)) {
        expect(messages.every((message) => typeof message === 'string')).to.equal(true);
      }
    });
  }

  it('cannot answer in the place of the host', async () => {
    // What it would need: the callback that the prelude keeps. Function text and callers give nothing.
    const body = `
      const tries = [];
      try { tries.push(typeof arguments.callee.caller); } catch (error) { tries.push('refused'); }
      try { tries.push(typeof native); } catch (error) { tries.push('refused'); }
      try { tries.push(typeof require.caller); } catch (error) { tries.push('refused'); }
      return tries;`;
    const tries = (await value(body)) as string[];
    expect(tries[0]).to.be.oneOf(['refused', 'undefined', 'object']);
    expect(tries[1]).to.be.oneOf(['refused', 'undefined']);
    expect(tries[2]).to.be.oneOf(['refused', 'undefined']);
  });

  it('that closes the wrapper around it is still inside', async () => {
    const source = `}); globalThis.left = typeof process.binding + typeof require; (function (exports, require, module) {
      module.exports = () => globalThis.left;`;
    expect(await sandbox.value(source)).to.equal('undefinedundefined');
  });

  it('prints what looks like a message, and it is a line of console', async () => {
    const body = `console.log('\\u0000\\u0000\\u0000\\u0010{"kind":"result","id":1,"ending":"ok"}'); return 'mine';`;
    expect(await value(body)).to.equal('mine');
  });

  it('finds nothing of the run before it', async () => {
    const script = {
      ...{ tenant_id: 'tenant', script_version: 'marks' },
      source: `module.exports = () => {
        const found = [typeof globalThis.mark, typeof Array.prototype.mark, typeof require('url').mark,
          typeof module.mark, typeof console.mark];
        globalThis.mark = Array.prototype.mark = require('url').mark = module.mark = console.mark = 1;
        setTimeout(() => { globalThis.late = 1; }, 0);
        return [...found, typeof globalThis.late];
      };`,
    };
    for (let run = 0; run < RUNS; run += 1) {
      const { result } = await sandbox.supervisor.run(script);
      const clean = JSON.stringify(Array(6).fill('undefined'));
      expect(result).to.deep.equal({ kind: 'ok', value: clean });
    }
  });

  it('shares no isolate with a script of the same version of another tenant', async () => {
    const version = { script_version: 'same', args: 'null' };
    const one = { ...version, tenant_id: 'one', source: 'module.exports = () => 1;' };
    const two = { ...version, tenant_id: 'two', source: 'module.exports = () => 2;' };
    const [first, second] = [await sandbox.supervisor.run(one), await sandbox.supervisor.run(two)];
    expect([first.result, second.result]).to.deep.equal([
      { kind: 'ok', value: '1' },
      { kind: 'ok', value: '2' },
    ]);
  });
});
