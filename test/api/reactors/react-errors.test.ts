/** What a caller gets when the code does not end well (facts 2.4): always the documented form. */
import { expect } from 'chai';
import type { JsonObject } from '../../support/http-call.ts';
import { type Reactor, type Reactors, startReactors } from './reactors.ts';

const SDK = "require('@basis-theory/basis-theory-reactor-formulas-sdk-js')";
const TITLE = 'One or more validation errors occurred.';

describe('a reaction that fails', () => {
  let reactors: Reactors;
  before(async () => {
    reactors = await startReactors();
  });
  after(() => reactors?.stop());

  /** Code that would not pass the check at save time, as another version may have stored it. */
  async function unchecked(code: string): Promise<Reactor> {
    const reactor = await reactors.script('return {}');
    await reactors.control.pool.query(
      'UPDATE reactors SET code = $2, code_version = gen_random_uuid() WHERE id = $1',
      [reactor.id, code],
    );
    return reactor;
  }

  async function failureOf(reactor: Reactor, args?: unknown): Promise<JsonObject> {
    const { status, body, headers } = await reactors.react(reactor, { args });
    expect(headers.get('content-type')).to.equal('application/problem+json');
    expect(body).to.have.all.keys('title', 'status', 'detail', 'errors');
    expect([body.title, body.status]).to.deep.equal([TITLE, status]);
    return body;
  }

  const CLASSES: [string, number, string][] = [
    ['BadRequestError', 400, 'Bad Request'],
    ['InvalidReactorConfigurationError', 400, 'Invalid Reactor Configuration'],
    ['AuthenticationError', 401, 'Authentication Failed'],
    ['InvalidPaymentMethodError', 402, 'Invalid Payment Method'],
    ['AuthorizationError', 403, 'Forbidden'],
    ['RateLimitError', 429, 'Rate Limit Exceeded'],
    ['ReactorRuntimeError', 500, 'Reactor Runtime Error'],
    ['ServiceUnavailableError', 503, 'Service Unavailable'],
  ];
  for (const [name, status, detail] of CLASSES) {
    it(`answers ${status} for a ${name}`, async () => {
      const reactor = await reactors.script(`
        const { ${name} } = ${SDK};
        throw new ${name}({ card: ['expired'], code: 7 });`);
      const errors = { card: ['expired'], code: ['7'] };
      expect(await failureOf(reactor)).to.deep.include({ status, detail, errors });
    });
  }

  const THROWN: Record<string, string> = {
    'a text': "throw 'boom'",
    undefined: 'throw undefined',
    null: 'throw null',
    'an error': "throw new Error('boom')",
    'a rejection': "return Promise.reject(new Error('boom'))",
    'a cyclic cause': "const e = new Error('boom'); e.cause = e; throw e",
    'an AggregateError': "throw new AggregateError([new Error('a')], 'boom')",
    'a getter that throws': "throw { get message() { throw new Error('boom') } }",
    'a proxy': "throw new Proxy({}, { get() { throw 'x' }, ownKeys() { throw 'y' } })",
    'a huge message': "throw new Error('boom'.repeat(1e6))",
  };
  for (const [what, body] of Object.entries(THROWN)) {
    it(`answers 500 for ${what}`, async () => {
      const failure = await failureOf(await reactors.script(body));
      expect(failure).to.deep.include({ status: 500, detail: 'Reactor Runtime Error' });
      const lists = Object.values(failure.errors as Record<string, string[]>);
      expect(lists.flat().every((text) => text.length <= 1_100)).to.equal(true);
    });
  }

  const BROKEN: [string, string, RegExp][] = [
    ['does not compile', '\nmodule.exports = (', /\(line \d+\)$/],
    ['exports nothing', 'const a = 1;', /./],
    ['exports a class', 'module.exports = class {};', /./],
    ['exports a generator', 'module.exports = function* () {};', /./],
    ['exports a getter', "Object.defineProperty(module, 'exports', { get: () => 1 })", /./],
    [
      'requires what is not there',
      "require('node:fs'); module.exports = () => {}",
      /no module "node:fs"/,
    ],
  ];
  for (const [what, code, message] of BROKEN) {
    it(`answers 422 for code that ${what}`, async () => {
      const failure = await failureOf(await unchecked(code));
      expect(failure).to.deep.include({ status: 422, detail: 'Invalid Reactor Formula' });
      expect((failure.errors as { error: string[] }).error[0]).to.match(message);
    });
  }

  const ENDS: [string, string, RegExp][] = [
    ['returns no object', "return 'text'", /must return an object/],
    ['returns a list', 'return []', /must return an object/],
    ['returns too much', "return { raw: 'x'.repeat(6 * 1024 * 1024) }", /larger than 5 MiB/],
    [
      'nests too deep',
      'let a = 1; for (let i = 0; i < 100; i++) a = [a]; return { raw: a }',
      /64|65/,
    ],
    ['never ends computing', 'for (;;) {}', /timed out: it computed for more than 10 s in all/],
    ['takes all memory', 'const all = []; for (;;) all.push(new Array(1e5).fill(1.5));', /memory/],
    [
      'gives an interim status',
      `const { CustomHttpResponseError: E } = ${SDK}; throw new E({ status: 103 })`,
      /200 to 599/,
    ],
  ];
  for (const [what, body, message] of ENDS) {
    it(`answers 500 for code that ${what}`, async () => {
      const failure = await failureOf(await reactors.script(body));
      expect(failure).to.deep.include({ status: 500, detail: 'Reactor Runtime Error' });
      expect((failure.errors as { error: string[] }).error[0]).to.match(message);
    }).timeout(60_000);
  }

  it('answers a CustomHttpResponseError as it is', async () => {
    const reactor = await reactors.script(`
      const { CustomHttpResponseError } = ${SDK};
      throw new CustomHttpResponseError(req.args);`);
    const headers = { 'X-Reason': 'teapot', 'BT-Trace-Id': 'mine', 'Transfer-Encoding': 'chunked' };
    const custom = { status: 418, headers, body: { short: ['and', 'stout'] } };
    const answer = await reactors.react(reactor, { args: custom });
    expect([answer.status, answer.text]).to.deep.equal([418, '{"short":["and","stout"]}']);
    expect(answer.headers.get('x-reason')).to.equal('teapot');
    expect(answer.headers.get('bt-trace-id')).not.to.equal('mine');
    expect(answer.headers.get('transfer-encoding')).to.equal(null);
    expect(answer.headers.get('content-type')).to.equal('application/json; charset=utf-8');
    const args = {
      status: 200,
      headers: { 'content-type': 'application/problem+json' },
      body: { a: 1 },
    };
    const typed = await reactors.react(reactor, { args });
    expect(typed.headers.get('content-type')).to.equal('application/problem+json');
    const empty = await reactors.react(reactor, { args: { status: 204 } });
    expect([empty.status, empty.text]).to.deep.equal([204, '']);
    const split = { status: 200, headers: { 'x-a': 'b\r\nset-cookie: c=d' }, body: 1 };
    expect((await failureOf(reactor, split)).status).to.equal(500);
    const large = { status: 200, headers: { 'x-a': 'b'.repeat(10_000) } };
    expect((await failureOf(reactor, large)).status).to.equal(500);
  });

  it('answers 400 when the configuration no longer fits the formula', async () => {
    const configuration = [{ name: 'KEY', type: 'string' }];
    const code = 'module.exports = () => ({})';
    const reactor = await reactors.reactor({
      formula: { code, configuration },
      configuration: { KEY: 'x' },
    });
    expect((await reactors.react(reactor)).status).to.equal(200);
    await reactors.control.pool.query(
      `UPDATE reactor_formulas SET configuration = '[{"name":"KEY","type":"number"}]' WHERE id = $1`,
      [reactor.formula_id],
    );
    await reactors.manage('PUT /tenants/self', { json: { name: 'Acme' } });
    const answer = await reactors.react(reactor);
    expect([answer.status, answer.body.errors]).to.deep.equal([
      400,
      { 'configuration.KEY': ['Must be the text of a number'] },
    ]);
  });

  it('answers 429 to a tenant over its share, and serves others meanwhile', async () => {
    const slow = await reactors.script(
      'await new Promise((end) => setTimeout(end, 1_000)); return {}',
    );
    const other = await reactors.control.addTenant('Globex');
    const { key } = await reactors.application({ permissions: ['token:use'] }, other);
    const quick = await reactors.reactor({ code: 'module.exports = () => ({})' }, other);
    const flood = Array.from({ length: 300 }, () => reactors.react(slow));
    expect((await reactors.react(quick, {}, key)).status).to.equal(200);
    const answers = await Promise.all(flood);
    const statuses = new Set(answers.map(({ status }) => status));
    expect([...statuses].sort()).to.deep.equal([200, 429]);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.headers.get('retry-after')).to.equal('1');
  }).timeout(60_000);
});
