/** What a script finds inside, and how it may end (facts 2.4 and 9.4). */
import { expect } from 'chai';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';

const SDK = '@basis-theory/basis-theory-reactor-formulas-sdk-js';

describe('a script', () => {
  let sandbox: Sandbox;
  before(async () => {
    sandbox = await startSandbox();
  });
  after(() => sandbox.supervisor.close());

  const inside = (expression: string): Promise<unknown> =>
    sandbox.value(`module.exports = async (req) => (${expression});`);

  it('gets args and configuration, and null for bt', async () => {
    const request = { args: '{"card":{"number":"4242"}}', configuration: '{"KEY":"k"}' };
    expect(await sandbox.value('module.exports = async (req) => req;', request)).to.deep.equal({
      ...{ args: { card: { number: '4242' } }, configuration: { KEY: 'k' }, bt: null },
    });
  });

  it('may be a plain function, an async one, or an arrow function', async () => {
    expect(
      await sandbox.value('module.exports = function (req) { return { raw: 1 }; };'),
    ).to.deep.equal({ raw: 1 });
    expect(await sandbox.value('module.exports = async function (req) { return 2; };')).to.equal(2);
    expect(await sandbox.value('module.exports = () => undefined; // the end')).to.equal(null);
  });

  for (const [what, source] of [
    ['nothing', 'const a = 1;'],
    ['an object', 'module.exports = {};'],
    ['a getter', "Object.defineProperty(module, 'exports', { get: () => () => 1 });"],
    ['a class', 'module.exports = class {};'],
    ['a generator', 'module.exports = function* () {};'],
    ['an async generator', 'module.exports = async function* () {};'],
    ['a proxy', 'module.exports = new Proxy(() => 1, {});'],
    [
      'a proxy that throws',
      'module.exports = new Proxy({}, { getOwnPropertyDescriptor() { throw 1; } });',
    ],
  ] as const) {
    it(`is no script when it exports ${what}`, async () => {
      expect((await sandbox.result(source)).kind).to.equal('type');
      const request = { tenant_id: 'tenant', script_version: `check ${what}`, source };
      expect((await sandbox.supervisor.check(request)).result.kind).to.equal('type');
    });
  }

  it('that does not compile says where', async () => {
    const source = 'module.exports = () => {\n  const a = ;\n};';
    expect(await sandbox.result(source)).to.deep.equal({
      ...{ kind: 'syntax', message: "Unexpected token ';'", line: 2 },
    });
  });

  it('that requires an unknown module at its top names it', async () => {
    const source = "const a = require('left-pad');\nmodule.exports = () => a;";
    const request = { tenant_id: 'tenant', script_version: 'left-pad', source };
    const unknown = { kind: 'unknown_module', module: 'left-pad' };
    expect((await sandbox.supervisor.check(request)).result).to.deep.equal(unknown);
    expect(await sandbox.result(source)).to.deep.equal(unknown);
  });

  it('is only loaded, not called, by a check', async () => {
    const source = "module.exports = () => { throw new Error('called'); };";
    const request = { tenant_id: 'tenant', script_version: 'checked', source };
    const { result } = await sandbox.supervisor.check(request);
    expect(result).to.deep.equal({ kind: 'ok', value: 'null' });
  });

  const CLASSES = [
    ...([
      ['BadRequestError', 400],
      ['InvalidReactorConfigurationError', 400],
    ] as const),
    ...([
      ['AuthenticationError', 401],
      ['InvalidPaymentMethodError', 402],
    ] as const),
    ...([
      ['AuthorizationError', 403],
      ['InvalidReactorFormulaError', 422],
    ] as const),
    ...([
      ['RateLimitError', 429],
      ['ReactorRuntimeError', 500],
      ['ServiceUnavailableError', 503],
    ] as const),
  ];
  for (const [name, status] of CLASSES) {
    it(`chooses ${status} by throwing ${name}, ours or its own copy`, async () => {
      const ours = await sandbox.result(
        `const { ${name} } = require('${SDK}'); module.exports = () => { throw new ${name}('no'); };`,
      );
      const copy = await sandbox.result(
        `class ${name} extends Error { name = '${name}'; errors = 'no'; } module.exports = () => { throw new ${name}(); };`,
      );
      for (const ended of [ours, copy]) {
        expect(ended.kind === 'error' && ended.error).to.deep.include({
          ...{ name, status, errors: { error: ['no'] } },
        });
      }
    });
  }

  for (const [thrown, errors] of [
    ["'no'", { error: ['no'] }],
    ['5', { error: ['5'] }],
    ["['a', { b: 1 }, 2]", { error: ['a', '{"b":1}', '2'] }],
    ["new Error('boom')", { error: ['boom'] }],
    ['new TypeError()', { error: ['TypeError'] }],
    [
      "{ a: 'x', b: ['y', { c: 1 }], d: { e: 2 } }",
      { a: ['x'], b: ['y', '{"c":1}'], d: ['{"e":2}'] },
    ],
    [
      '(() => { const a = { b: {} }; a.b.c = a; return { a }; })()',
      { a: ['{"b":{"c":"[Circular]"}}'] },
    ],
  ] as const) {
    it(`has its errors normalised: ${thrown}`, async () => {
      const source = `const { BadRequestError } = require('${SDK}');
        module.exports = () => { throw new BadRequestError(${thrown}); };`;
      const ended = await sandbox.result(source);
      expect(ended.kind === 'error' && ended.error.errors).to.deep.equal(errors);
    });
  }

  it('that throws anything else has a runtime error with its message and its line', async () => {
    expect(
      await sandbox.result("module.exports = () => {\n throw new Error('boom');\n};"),
    ).to.deep.equal({
      kind: 'error',
      error: {
        ...{ name: 'ReactorRuntimeError', status: 500, detail: 'Reactor Runtime Error' },
        ...{ errors: { error: ['boom'] }, line: 2 },
      },
    });
  });

  it('answers with a response of its own', async () => {
    const source = `const { CustomHttpResponseError } = require('${SDK}'); module.exports = () => {
      throw new CustomHttpResponseError({ status: 418, headers: { 'x-tea': 'pot' }, body: { a: 1 } }); };`;
    expect(await sandbox.result(source)).to.deep.equal({
      ...{ kind: 'custom_response', status: 418, headers: { 'x-tea': 'pot' }, body: '{"a":1}' },
    });
    const wrong = source.replace('418', '99');
    expect((await sandbox.result(wrong)).kind).to.equal('error');
  });

  it('has console lines kept, whatever it prints', async () => {
    const source = `module.exports = () => { console.log('a %s %d', 'b', 1, { c: [1, 'x'] });
      console.error(new Map([[1, 2]])); console.log({ get a() { throw 1; }, toString() { throw 1; } }); };`;
    const { console } = await sandbox.run(source);
    expect(console).to.deep.equal([
      { level: 'log', text: "a b 1 { c: [ 1, 'x' ] }" },
      { level: 'error', text: 'Map(1) { [ 1, 2 ] }' },
      { level: 'log', text: '{ a: [Getter/Setter], toString: [Function: toString] }' },
    ]);
  });

  it('waits for timers', async () => {
    const source = `module.exports = async () => {
      const order = []; let ticks = 0;
      clearTimeout(setTimeout(() => order.push('never'), 0));
      await new Promise((resolve) => setTimeout(resolve, 5));
      await new Promise((resolve) => { const id = setInterval(() => { if (++ticks === 3) { clearInterval(id); resolve(); } }, 1); });
      await new Promise((resolve) => setImmediate(resolve));
      queueMicrotask(() => order.push('micro')); await null; await null;
      return [...order, ticks];
    };`;
    expect(await sandbox.value(source)).to.deep.equal(['micro', 3]);
  });

  it('that throws in a timer has that error', async () => {
    const source = `module.exports = () => new Promise(() => setTimeout(() => { throw new Error('late'); }, 1));`;
    const ended = await sandbox.result(source);
    expect(ended.kind === 'error' && ended.error.errors).to.deep.equal({ error: ['late'] });
  });

  const TEXT = 'aé€😀\u0000\ud800';
  for (const encoding of ['utf8', 'hex', 'base64', 'base64url', 'latin1', 'utf16le'] as const) {
    it(`has a Buffer that agrees with Node's in ${encoding}`, async () => {
      const expression = `Buffer.from(${JSON.stringify(TEXT)}).toString('${encoding}')`;
      expect(await inside(expression)).to.equal(Buffer.from(TEXT).toString(encoding));
      const encoded = Buffer.from('a payload of some length').toString(encoding);
      const decoded = await inside(`[...Buffer.from(${JSON.stringify(encoded)}, '${encoding}')]`);
      expect(decoded).to.deep.equal([...Buffer.from(encoded, encoding)]);
    });
  }

  it('has a Buffer with concat, compare, numbers, searching and JSON', async () => {
    const expression = `[
      Buffer.concat([Buffer.from('ab'), Buffer.from('cd')]).toString(), Buffer.isBuffer(Buffer.alloc(1)),
      Buffer.from('b').compare(Buffer.from('a')), Buffer.from([1, 2, 3, 4]).readUInt32BE(0),
      Buffer.alloc(4).fill('ab').toString(), Buffer.from('hello').indexOf('ll'), Buffer.from('a'),
      Buffer.byteLength('é'), Buffer.from('abc').slice(1).equals(Buffer.from('bc')), atob(btoa('x'))]`;
    expect(await inside(expression)).to.deep.equal([
      ...['abcd', true, 1, 16_909_060, 'abab', 2, { type: 'Buffer', data: [97] }, 2, true, 'x'],
    ]);
  });

  it('decodes ill-formed UTF-8 as Node does', async () => {
    const bytes = [0x61, 0xc0, 0x80, 0xe2, 0x82, 0xf0, 0x9f, 0x98, 0x80, 0xed, 0xa0, 0x80, 0xff];
    const expected = Buffer.from(bytes).toString();
    expect(
      await inside(`new TextDecoder().decode(Uint8Array.from(${JSON.stringify(bytes)}))`),
    ).to.equal(expected);
    const fatal = `(() => { try { new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.of(255)); } catch (e) { return e.name; } })()`;
    expect(await inside(fatal)).to.equal('TypeError');
  });

  it('has URL and URLSearchParams', async () => {
    const expression = `(() => { const url = new URL('../b?x=1&y=a+b#h', 'https://user@EXAMPLE.com:443/a/c');
      url.searchParams.append('z', 'é&'); url.port = '8443'; url.hash = '';
      return [url.href, url.origin, url.searchParams.get('y'), String(new URLSearchParams({ a: '1 2' })),
        URL.canParse('no'), JSON.stringify({ url: new URL('https://a.example') })]; })()`;
    expect(await inside(expression)).to.deep.equal([
      'https://user@example.com:8443/b?x=1&y=a+b&z=%C3%A9%26',
      ...['https://example.com:8443', 'a b', 'a=1+2', false, '{"url":"https://a.example/"}'],
    ]);
  });

  it('has querystring, also for a form that is parsed already', async () => {
    const expression = `(() => { const q = require('querystring');
      return [q.parse('a=1&a=2&b=%C3%A9+x'), q.stringify({ a: [1, 2], b: 'é x' }), q.parse({ a: '1' })]; })()`;
    expect(await inside(expression)).to.deep.equal([
      ...[{ a: ['1', '2'], b: 'é x' }, 'a=1&a=2&b=%C3%A9%20x', { a: '1' }],
    ]);
  });

  it('has util, events, url and structuredClone', async () => {
    const expression = `(async () => {
      const { promisify, inspect, isDeepStrictEqual } = require('node:util'); const E = require('events'); const url = require('url');
      const e = new E(); const got = []; e.once('a', (x) => got.push(x)); e.emit('a', 1); e.emit('a', 2);
      const cycle = { d: new Date(0), m: new Map([[1, { a: 1 }]]) }; cycle.self = cycle; const copy = structuredClone(cycle);
      return [await promisify((x, done) => done(null, x + 1))(1), inspect({ a: [1] }), got, url.parse('https://a.example/b?c=d').pathname,
        copy.self === copy, copy.d.getTime(), copy.m.get(1).a, isDeepStrictEqual({ a: [1] }, { a: [1] })]; })()`;
    expect(await inside(expression)).to.deep.equal([
      2,
      '{ a: [ 1 ] }',
      [1],
      '/b',
      true,
      0,
      1,
      true,
    ]);
  });
});
