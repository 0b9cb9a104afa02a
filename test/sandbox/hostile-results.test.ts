/** What a script can do to the text that it returns, and to the promise that brings it. */
import { expect } from 'chai';
import { besideNeighbour, type Sandbox, startSandbox } from '../support/sandbox.ts';

describe('a script whose result is a trick', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  /** [what, body, the JSON text that comes out]. */
  const RESULTS: readonly [string, string, string][] = [
    [
      'toJSON on all prototypes',
      "for (const C of [Array, Object, String, Number, Boolean]) C.prototype.toJSON = () => 'tricked'; return { a: [1] };",
      '"tricked"',
    ],
    [
      'a toJSON that changes its mind',
      'let n = 0; return { toJSON: () => ({ n: ++n }) };',
      '{"n":1}',
    ],
    [
      'a getter that adds members',
      'const o = { get a() { o.b = 1; return 2; } }; return o;',
      '{"a":2}',
    ],
    [
      'a proxy for an array',
      "return new Proxy([1, 2], { get: (t, n) => (n === 'length' ? 1 : t[n]) });",
      '[1]',
    ],
    [
      'a name that is a prototype',
      'return JSON.parse(\'{"__proto__":{"a":1}}\');',
      '{"__proto__":{"a":1}}',
    ],
    ['half a character', "return '\\ud800';", '"\\ud800"'],
    ['numbers that JSON has not', 'return [NaN, Infinity, -0];', '[null,null,0]'],
    ['a symbol and a function', "return [Symbol('a'), () => 1, undefined];", '[null,null,null]'],
    ['a thenable', 'return { then(resolve) { resolve(1); resolve(2); throw 3; } };', '1'],
    [
      'a promise with a then of its own',
      'const p = Promise.resolve(1); p.then = (resolve) => resolve(2); return p;',
      '2',
    ],
    [
      'Symbol.toPrimitive',
      'return { [Symbol.toPrimitive]() { throw 1; }, toString() { throw 2; }, a: 1 };',
      '{"a":1}',
    ],
    [
      'inspect.custom, which nobody calls',
      "return { [Symbol.for('nodejs.util.inspect.custom')]() { throw 1; }, a: 1 };",
      '{"a":1}',
    ],
    [
      'Symbol.hasInstance on Error',
      'Object.defineProperty(Error, Symbol.hasInstance, { value: () => { throw 1; } }); return 1;',
      '1',
    ],
    [
      'Symbol.iterator on arrays',
      'Array.prototype[Symbol.iterator] = () => { throw 1; }; return [1];',
      '[1]',
    ],
    [
      'Symbol.replace and the like on patterns',
      "for (const s of ['replace', 'match', 'split', 'search']) RegExp.prototype[Symbol[s]] = () => { throw 1; }; return 'a';",
      '"a"',
    ],
    [
      'Symbol.isConcatSpreadable',
      'Array.prototype[Symbol.isConcatSpreadable] = false; return [[1]];',
      '[[1]]',
    ],
    ['Symbol.unscopables', 'Array.prototype[Symbol.unscopables] = null; return 1;', '1'],
    [
      'raw JSON',
      "return { a: JSON.rawJSON('1e400'), b: JSON.rawJSON('\"x\"') };",
      '{"a":1e400,"b":"x"}',
    ],
    ['its own end told twice', 'setTimeout(() => { throw new Error("late"); }, 0); return 1;', '1'],
    [
      'a frozen world',
      'for (const o of [Object, Array, Promise, JSON, Reflect]) { Object.freeze(o); Object.freeze(o.prototype ?? {}); } return [1];',
      '[1]',
    ],
    [
      'a global object without anything',
      'for (const n of Object.getOwnPropertyNames(globalThis)) { try { delete globalThis[n]; } catch {} } return 1;',
      '1',
    ],
  ];
  for (const [what, body, text] of RESULTS) {
    it(`gives just JSON: ${what}`, async () => {
      const source = `module.exports = async function (req) { ${body} };`;
      const ended = await besideNeighbour(sandbox, () => sandbox.result(source));
      expect(ended).to.deep.equal({ kind: 'ok', value: text });
    });
  }

  /** [what, body]: ends as an error of the script. */
  const FAILURES: readonly [string, string][] = [
    ['a BigInt', 'return 1n;'],
    [
      'a promise of another species',
      'class P extends Promise { static get [Symbol.species]() { throw 1; } } return P.resolve(1);',
    ],
    [
      'a promise whose constructor lies',
      'const p = Promise.resolve(1); p.constructor = { get [Symbol.species]() { throw 1; } }; return p;',
    ],
    ['a rejection that nobody handles', "Promise.reject(new Error('left')); return 1;"],
    ['a result of itself', 'const o = {}; o.o = o; return { o };'],
    [
      'a proxy that lies about its keys',
      "return new Proxy(Object.freeze({ a: 1 }), { ownKeys: () => ['b'] });",
    ],
    [
      'a revoked proxy',
      'const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return { proxy };',
    ],
    [
      'a getter that throws a proxy',
      'return { get a() { throw new Proxy({}, { get() { throw 1; } }); } };',
    ],
    [
      'a stack that is used up',
      'const o = {}; let c = o; for (let i = 0; i < 1e5; i++) c = c.a = {}; return o;',
    ],
    [
      'an error whose stack is a trap',
      "const e = new Error('a'); Object.defineProperty(e, 'stack', { get() { throw 1; } }); throw e;",
    ],
    [
      'a prepareStackTrace that throws',
      "Error.prepareStackTrace = () => { throw new Error('trap'); }; null.a;",
    ],
    [
      'a message that is no text',
      'throw Object.assign(new Error(), { message: { toString() { throw 1; } } });',
    ],
    [
      'a recursion inside of a prelude function',
      'const deep = () => { Buffer.from("a"); new URL("https://a.example"); console.log(1); deep(); }; deep();',
    ],
  ];
  for (const [what, body] of FAILURES) {
    it(`is an error of its own: ${what}`, async () => {
      const source = `module.exports = async function (req) { ${body} };`;
      const ended = await besideNeighbour(sandbox, () => sandbox.result(source));
      expect(ended.kind).to.equal('error');
      expect(JSON.stringify(ended)).not.to.match(/\.cjs|\.ts\b|node_modules|isolated/);
    });
  }
});
