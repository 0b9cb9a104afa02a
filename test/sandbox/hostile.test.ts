/**
 * Scripts that aim at who reads what they leave behind: the gateway that takes results, errors and
 * consoles, and the thread that compiles them. Each runs beside a neighbour that must not notice.
 */
import { expect } from 'chai';
import type { ScriptResult, ScriptRun } from '../../shared/sandbox/protocol.ts';
import { besideNeighbour, type Sandbox, startSandbox } from '../support/sandbox.ts';

const DEADLINE_MS = 1_000;
/** Building half a million members takes long on a busy machine. */
const PATIENT_MS = 20_000;
const MEMBERS = "const many = {}; for (let i = 0; i < 300_000; i++) many['k' + i] = 1;";
const CUSTOM = "name: 'CustomHttpResponseError', status: 200";
const NESTED = (opening: string, closing: string, depth: number): string =>
  `JSON.parse(${JSON.stringify(opening)}.repeat(${depth}) + ${JSON.stringify(closing)}.repeat(${depth}))`;

/** Text of all messages that left the sandbox; every one within its bounds. */
function messagesOf(result: ScriptResult): string[] {
  if (result.kind !== 'error') throw new Error(`it ended as ${result.kind}`);
  const lists = Object.values(result.error.errors);
  expect(lists.length).to.be.at.most(100);
  for (const list of lists) expect(list.length).to.be.at.most(100);
  const messages = lists.flat();
  for (const message of messages) expect(message.length).to.be.at.most(1024);
  return messages;
}

describe('a script that aims at the gateway', () => {
  let sandbox: Sandbox;
  let lost = 0;
  before(async () => {
    sandbox = await startSandbox({ onHostLost: () => lost++ });
  });
  beforeEach(() => {
    lost = 0;
  });
  after(() => sandbox.supervisor.close());

  const attack = (body: string, deadline_ms = PATIENT_MS): Promise<ScriptRun> =>
    besideNeighbour(sandbox, () =>
      sandbox.run(`module.exports = async function (req) { ${body} };`, { deadline_ms }),
    );

  for (const [what, body] of [
    ['a module that is not there', "for (;;) { try { require('nope'); } catch {} }"],
    [
      'a name of a million characters',
      "const name = 'x'.repeat(1e6); for (;;) { try { require(name); } catch {} }",
    ],
    [
      'a module that fails each time',
      `Object.defineProperty(Object.prototype, 'exports', { set() { throw 1; } }); Object.defineProperty = Object.defineProperties = Object.create = () => { throw 1; };
      for (;;) { try { require('yup'); } catch {} }`,
    ],
    ['URLs that are none', "for (;;) { try { new URL('x'); } catch {} }"],
    ['hashes', "for (;;) { try { require('crypto').createHash('nope'); } catch {} }"],
    ['console lines', "for (;;) { try { console.log(''); } catch {} }"],
    ['timers', 'for (;;) { try { clearTimeout(setTimeout(() => {}, 1)); } catch {} }'],
    [
      'fetches without a service',
      "for (;;) { fetch('https://a.example/').catch(() => {}); await 0; }",
    ],
  ] as const) {
    it(`is cut when it asks the host without end, and the host lives: ${what}`, async () => {
      const { result } = await attack(body, DEADLINE_MS);
      // Its promises may be its memory's end instead.
      expect(result.kind).to.be.oneOf(['timeout', 'memory']);
      expect(lost).to.equal(0);
    });
  }

  it('prints 70,000 empty lines, of which 1,024 are kept', async () => {
    const { result, console } = await attack(
      "for (let i = 0; i < 70_000; i++) console.log(''); return 1;",
    );
    expect([result.kind, console.length]).to.deep.equal(['ok', 1024]);
  });

  for (const text of ['\\ud800', '\\u0000', '\\u2028', '"\\\\', '\\u{1f600}']) {
    it(`prints 64 KiB of ${text}, which are whole lines of text`, async () => {
      const { result, console } = await attack(
        `for (let i = 0; i < 99; i++) console.log('${text}'.repeat(1000)); return 1;`,
      );
      expect(result.kind).to.equal('ok');
      expect(console).not.to.have.length(0);
      expect(console.every(({ level, text }) => level === 'log' && text !== '')).to.equal(true);
    });
  }

  it('answers with a custom body of 300,000 members, which nobody parses', async () => {
    const { result } = await attack(`${MEMBERS} throw { ${CUSTOM}, body: many };`);
    if (result.kind !== 'custom_response') throw new Error(result.kind);
    expect(result.body).to.match(/^\{"k0":1,.*"k299999":1\}$/);
  });

  it('answers with a custom body that is 2,000 deep', async () => {
    const { result } = await attack(`throw { ${CUSTOM}, body: ${NESTED('[', ']', 2000)} };`);
    expect(result.kind === 'custom_response' && result.body).to.have.length(4000);
  });

  for (const [what, thrown] of [
    ['300,000 headers', `{ ${CUSTOM}, headers: many }`],
    [
      '101 headers',
      `{ ${CUSTOM}, headers: Object.fromEntries(Object.entries(many).slice(0, 101)) }`,
    ],
    ['a header of 2 MiB', `{ ${CUSTOM}, headers: { a: 'x'.repeat(2 << 20) } }`],
    ['headers within headers', `{ ${CUSTOM}, headers: { a: { b: 'c' } } }`],
    ['a header of two lines', `{ ${CUSTOM}, headers: { a: 'b\\r\\nset-cookie: c' } }`],
    ['a header name of two lines', `{ ${CUSTOM}, headers: { 'a\\nb': 'c' } }`],
    ['a body that is too deep', `{ ${CUSTOM}, body: ${NESTED('[', ']', 50_000)} }`],
    [
      'a body that cannot be written',
      `{ ${CUSTOM}, body: { toJSON() { throw new Error('mine'); } } }`,
    ],
    [
      'a status that changes',
      `{ name: 'CustomHttpResponseError', n: 0, get status() { return this.n++ ? 200 : 'x'; } }`,
    ],
  ] as const) {
    it(`has an error of its own for a custom answer with ${what}`, async () => {
      messagesOf((await attack(`${MEMBERS} throw ${thrown};`)).result);
      expect(lost).to.equal(0);
    });
  }

  it('cannot slip headers into a custom answer by a prototype', async () => {
    const { result } = await attack(
      `Object.prototype['set-cookie'] = 'a'; Object.prototype.headers = { 'x-a': 'b' };
      throw { ${CUSTOM}, headers: JSON.parse('{"__proto__":"c","constructor":"d"}') };`,
    );
    if (result.kind !== 'custom_response') throw new Error(result.kind);
    expect(Object.keys(result.headers)).to.deep.equal(['__proto__', 'constructor']);
    expect(({} as Record<string, unknown>).c).to.equal(undefined);
  });

  it('cannot slip a second body behind a custom answer', async () => {
    const { result } = await attack(
      `throw { ${CUSTOM}, headers: { a: '1' }, body: 'a\\n{"b":1}' };`,
    );
    expect(result.kind === 'custom_response' && result.body).to.equal('"a\\n{\\"b\\":1}"');
  });

  for (const [what, body] of [
    [
      'String.prototype.slice',
      "String.prototype.slice = function () { return String(this); }; throw new Error('x'.repeat(1e5));",
    ],
    [
      'Array.prototype.slice',
      "Array.prototype.slice = function () { return this; }; throw { name: 'BadRequestError', errors: { a: Array(5000).fill('b') } };",
    ],
    [
      'Object.entries',
      "Object.entries = () => Array.from({ length: 5000 }, (_, i) => ['k' + i, ['a']]); throw { name: 'BadRequestError', errors: {} };",
    ],
    [
      'Array.prototype.map',
      "Array.prototype.map = () => Array(9000).fill('x'.repeat(50)); throw { name: 'BadRequestError', errors: { a: ['b'] } };",
    ],
  ] as const) {
    it(`does not get around the bounds of errors by its own ${what}`, async () => {
      messagesOf((await attack(body)).result);
    });
  }

  it('cannot make an error of 10 MiB', async () => {
    const { result } = await attack(
      `const errors = {}; for (let i = 0; i < 100; i++) errors['e' + i] = Array(100).fill('x'.repeat(1024));
      throw { name: 'BadRequestError', errors };`,
    );
    expect(result).to.deep.equal({ kind: 'result_too_large' });
  });

  it('has 300,000 members of errors cut or refused, not parsed', async () => {
    const { result } = await attack(
      `${MEMBERS} Array.prototype.slice = function () { return this; }; throw { name: 'BadRequestError', errors: many };`,
    );
    expect(messagesOf(result)).not.to.have.length(0);
  });

  for (const [what, source] of [
    ['loops outside of its wrapper', '}); for (;;) {} (function () {'],
    ['loops at its top', 'for (;;) {}'],
    [
      'loops in a getter of its exports',
      'Object.defineProperty(module, "exports", { get() { for (;;) {} } }); while (1) {}',
    ],
  ] as const) {
    it(`ends in time when it ${what}, and holds nobody up`, async () => {
      const whole = `${source}; module.exports = () => 1;`;
      const run = () => sandbox.result(whole, { deadline_ms: DEADLINE_MS });
      expect((await besideNeighbour(sandbox, run)).kind).to.equal('timeout');
      expect(lost).to.equal(0);
    });
  }

  it('has its thread taken away when it is slow to compile', async () => {
    // Each declaration is looked for in each block around it, before anything runs.
    const source = `${'{'.repeat(3000)}${'var a;'.repeat(150_000)}${'}'.repeat(3000)}
      module.exports = () => 1;`;
    const run = () => sandbox.result(source, { deadline_ms: 500 });
    const ended = await besideNeighbour(sandbox, run);
    // A machine that compiles it in time runs it.
    expect([ended.kind, lost]).to.deep.equal(ended.kind === 'ok' ? ['ok', 0] : ['timeout', 1]);
  });

  for (const source of [
    '})',
    '}); (function () {',
    '/*',
    '<!-- module.exports = () => 1',
    '#!/bin/sh',
    'return 1',
    "'use strict'; with ({}) {}",
    '`${',
    '\u2028module.exports = () => {',
    'await 1; import("fs")',
    '(((((((((('.repeat(20_000),
    '[['.repeat(200_000),
  ]) {
    it(`is no script, and no harm: ${JSON.stringify(source.slice(0, 40))}`, async () => {
      const ended = await besideNeighbour(sandbox, () => sandbox.result(source));
      expect(ended.kind).to.be.oneOf(['syntax', 'type', 'error']);
      expect(lost).to.equal(0);
    });
  }
});
