/** How npm modules come into a script, and that they bring nothing else with them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { OFFERED_MODULES } from '../../shared/sandbox/modules/module-list.ts';
import { besideNeighbour, type Sandbox, startSandbox } from '../support/sandbox.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMES = OFFERED_MODULES.map(({ name }) => name);

describe('npm modules in a script', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  const inside = (body: string): Promise<unknown> =>
    sandbox.value(`module.exports = async (req) => { ${body} };`);
  const checked = async (source: string): Promise<unknown> => {
    const request = { tenant_id: 'tenant', script_version: source, source };
    return (await sandbox.supervisor.check(request)).result;
  };

  it('are in the table for users, at the versions that are installed', () => {
    const text = readFileSync(join(ROOT, 'docs/modules.md'), 'utf8');
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const rows = text.matchAll(/^\| (`[^|]+`) \| (\d+\.\d+\.\d+) \|/gm);
    const versions = Array.from(rows, ([, names = '', version]) => {
      const [first = ''] = names.split('`, `');
      return [first.replaceAll('`', ''), version];
    });
    expect(versions).to.have.length.above(15);
    for (const [name = '', version] of versions) expect(dependencies[name], name).to.equal(version);
    for (const name of NAMES.filter((name) => !name.startsWith('crypto-js/'))) {
      expect(text, name).to.include(name.replace('dayjs/plugin/', ''));
    }
  });

  for (const name of NAMES) {
    it(`are there: ${name}`, async () => {
      const source = `const loaded = require(${JSON.stringify(name)});
        module.exports = () => [typeof loaded, Object.getOwnPropertyNames(loaded).length > 0];`;
      expect(await checked(source)).to.deep.equal({ kind: 'ok', value: 'null' });
      const [type, hasMembers] = (await sandbox.value(source)) as [string, boolean];
      expect(type).to.be.oneOf(['object', 'function']);
      expect(hasMembers).to.equal(true);
    });
  }

  for (const name of [
    ...[
      'left-pad',
      'nope',
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
      'node:lodash',
    ],
    ...[
      'fs',
      'node:fs',
      'child_process',
      'net',
      'lodash/../fs',
      './lodash',
      '/etc/passwd',
      'Lodash',
    ],
    ...['lodash/prototype', 'lodash/__proto__', 'lodash/VERSION', 'crypto-js/core', 'jose/nothing'],
    ...['lodash.js', 'index.json', ' lodash', 'lodash\u0000', 'node:node:stream', ''],
  ]) {
    it(`are no others: ${JSON.stringify(name)}`, async () => {
      const source = `require(${JSON.stringify(name)}); module.exports = () => 1;`;
      const unknown = { kind: 'unknown_module', module: name };
      expect(await checked(source)).to.deep.equal(unknown);
      expect(await sandbox.result(source)).to.deep.equal(unknown);
    });
  }

  it('are asked for by strings only', async () => {
    const body = `const names = [['lodash'], { toString: () => 'lodash' }, undefined, null, 7, Symbol('lodash'), new String('lodash')];
      return names.map((name) => { try { return typeof require(name); } catch (error) { return 'refused'; } });`;
    expect(await inside(body)).to.deep.equal(Array(7).fill('refused'));
  });

  it('are one of each in a run, whatever they are called', async () => {
    const body = `return [require('lodash') === require('lodash'), require('stream') === require('node:stream'),
      require('stream').promises === require('node:stream/promises'), require('csv-parse').parse() instanceof require('stream').Transform,
      require('lodash/get') === require('lodash').get, require('crypto-js/enc-hex') === require('crypto-js').enc.Hex];`;
    expect(await inside(body)).to.deep.equal(Array(6).fill(true));
  });

  it('are fresh in every run, whatever the last one did to them', async () => {
    const source = `module.exports = () => { const _ = require('lodash');
      const seen = [typeof _.planted, typeof {}.planted, _.chunk([1], 1)];
      _.planted = 1; _.chunk = () => 'changed'; Object.prototype.planted = 1; Array.prototype.map = () => 'changed'; return seen; };`;
    const request = { script_version: 'planted' };
    for (let run = 0; run < 3; run += 1) {
      const seen = await sandbox.value(source, request);
      expect(seen).to.deep.equal(['undefined', 'undefined', [[1]]]);
    }
  });

  it('can be tried again when they failed to load', async () => {
    const body = `const { defineProperty } = Object; const kept = Object.create; let failed;
      Object.create = () => { throw new Error('not now'); }; try { require('crypto-js'); } catch (error) { failed = error.message; }
      Object.create = kept; return [failed, require('crypto-js').MD5('abc').toString()];`;
    expect(await inside(body)).to.deep.equal(['not now', '900150983cd24fb0d6963f7d28e17f72']);
  });

  it('belong to the context and see nothing of the host or the prelude', async () => {
    const body = `const _ = require('lodash'); const global = (value) => value.constructor.constructor('return this')();
      const hidden = _.template('<%= [typeof native, typeof internal, typeof limits, typeof factories, typeof module, typeof require] %>')();
      const stack = (() => { try { require('csv-parse/sync').parse('a\\n1,2', { columns: true }); } catch (error) { return error.stack; } })();
      return [[_, _.chunk, require('jose').SignJWT, require('stream').Readable].every((value) => global(value) === globalThis),
        hidden, /csv-parse_sync/.test(stack), /file:|node:internal|isolated-vm/.test(stack) || stack.includes(${JSON.stringify(ROOT)})];`;
    const none = Array(6).fill('undefined').join();
    expect(await inside(body)).to.deep.equal([true, none, true, false]);
  });

  it('load in a script that has changed every prototype, or fail inside it alone', async () => {
    const source = `for (const type of [Object, Function, Array, Map, Promise, String, RegExp]) {
        for (const name of Object.getOwnPropertyNames(type.prototype)) { try { type.prototype[name] = () => { throw new Error('mine'); }; } catch {} } }
      try { Object.defineProperty(Object.prototype, 'exports', { set() { throw new Error('mine'); } }); } catch {}
      let failed = 'no'; try { require('lodash'); require('axios'); } catch (error) { failed = 'yes'; }
      module.exports = () => failed;`;
    const ended = await besideNeighbour(sandbox, () => sandbox.result(source));
    expect(ended.kind).to.be.oneOf(['ok', 'error', 'type']);
    expect(await inside(`return require('lodash').last([1, 2]);`)).to.equal(2);
  });

  it('do not change a prototype for a script that merges hostile data', async () => {
    const body = `const _ = require('lodash'); const hostile = JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":{"y":1}}}');
      _.merge({}, hostile); _.defaultsDeep({}, hostile); _.set({}, '__proto__.z', 1); _.set({}, 'constructor.prototype.z', 1);
      require('node-forge'); new (require('fast-xml-parser').XMLParser)().parse('<__proto__><x>1</x></__proto__>');
      return [typeof {}.x, typeof {}.y, typeof {}.z];`;
    const ended = await sandbox.result(`module.exports = async () => { ${body} };`);
    // fast-xml-parser may refuse such a name altogether.
    if (ended.kind === 'ok') {
      expect(JSON.parse(ended.value)).to.deep.equal(Array(3).fill('undefined'));
    } else expect(ended.kind).to.equal('error');
  });

  describe('cost the script that uses them', () => {
    it('its time', async () => {
      const source = `module.exports = () => require('lodash').forEach([1], () => { for (;;) {} });`;
      const ended = await besideNeighbour(sandbox, () =>
        sandbox.result(source, { deadline_ms: 500 }),
      );
      expect(ended).to.deep.equal({ kind: 'timeout', limit: 'run', limit_ms: 500 });
    });

    it('its memory', async () => {
      const source = `module.exports = () => { const kept = []; for (let n = 0; n < 13; n += 1) kept.push(new Array(1e6).fill(n + 0.5));
        for (let n = 0; ; n += 1) { for (const name of ${JSON.stringify(NAMES)}) require(name); kept.push(new Array(1e5).fill(n)); } };`;
      const ended = await besideNeighbour(sandbox, () => sandbox.result(source));
      expect(ended.kind).to.be.oneOf(['memory', 'crashed', 'timeout']);
    });

    it('its stack', async () => {
      const source = `module.exports = () => { const seen = {}; const names = ${JSON.stringify(NAMES)};
        const deep = (n) => { try { deep(n + 1); } catch {} try { seen[typeof require(names[n % names.length])] = 1; } catch (error) { seen[error.name] = 1; } };
        deep(0); return Object.keys(seen).length > 0; };`;
      const ended = await besideNeighbour(sandbox, () => sandbox.result(source));
      expect(ended.kind).to.be.oneOf(['ok', 'memory', 'crashed', 'timeout', 'error']);
    });
  });
});
