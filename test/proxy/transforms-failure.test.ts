/** Transforms that fail or attack: nothing is sent, and the caller is told (facts 2.3; attacks C-13, C-14). */
import { expect } from 'chai';
import type { JsonObject } from '../support/http-call.ts';
import { startOrigin } from './origin.ts';
import { FORM, failure, JSON_HEADERS, Transforming } from './transforming.ts';

describe('a request transform that fails', () => {
  let t: Transforming;
  before(async () => {
    t = await Transforming.start();
  });
  after(() => t?.stop());
  beforeEach(() => t.reset());

  const invalid = [
    "{ headers: ['a'] }",
    '{ headers: "a: b" }',
    '{ headers: { a: ["b", "c"] } }',
    '{ headers: { a: { b: 1 } } }',
    '{ headers: { a: "b\\r\\nX-Injected: 1" } }',
    '{ headers: { "a b": "c" } }',
    '{ headers: { ":authority": "evil.example" } }',
    '{ headers: { a: "€" } }',
    '{ headers: { a: "Jürgen" } }',
    '{ headers: { get a() { return { toString: () => "b" } } } }',
    '{ headers: new Proxy({}, { get: () => "b", ownKeys: () => ["a\\n"], getOwnPropertyDescriptor: () => ({ value: "b", enumerable: true, configurable: true }) }) }',
  ];
  for (const result of invalid) {
    it(`is a failure for invalid headers: ${result}`, async () => {
      const error = failure(await t.onRequest(`return ${result};`));
      expect(error).to.deep.equal({
        errors: { error: ['The transform returned an invalid header.'] },
        title: 'One or more validation errors occurred.',
        status: 500,
        detail: 'Reactor Runtime Error',
      });
      expect(t.origin.received).to.have.length(0);
    });
  }

  const noMessage = [
    '',
    'return null;',
    'return [];',
    'return {};',
    'return "x";',
    'return { Body: 1 };',
  ];
  for (const code of noMessage) {
    it(`sends nothing when it returns no message: ${code || 'nothing'}`, async () => {
      const error = failure(await t.onRequest(code, { body: '{"pan":1}', headers: JSON_HEADERS }));
      expect(error.status).to.equal(500);
      expect(JSON.stringify(error.errors)).to.contain('must return an object with body');
      expect(t.origin.received).to.have.length(0);
    });
  }

  it('returns what getters and toJSON make of it, once, and nothing of prototypes', async () => {
    const code = `let reads = 0;
      const headers = JSON.parse('{"__proto__":"p","constructor":"c"}');
      return { get body() { reads += 1; return { reads, toJSON: () => ({ reads }) }; }, headers };`;
    const { status, text } = await t.onRequest(code);
    expect(status, text).to.equal(200);
    expect(t.received().body).to.equal('{"reads":1}');
    expect([...t.header('__proto__'), ...t.header('constructor')]).to.deep.equal(['p', 'c']);
  });

  const failures: [string, string, JsonObject][] = [
    [
      'a reactor error',
      'throw new (require("@basis-theory/basis-theory-reactor-formulas-sdk-js").InvalidPaymentMethodError)("no card");',
      { status: 402, detail: 'Invalid Payment Method', errors: { error: ['no card'] } },
    ],
    [
      'any other error',
      'throw new Error("boom");',
      { status: 500, detail: 'Reactor Runtime Error', errors: { error: ['boom'] } },
    ],
    [
      'an endless loop of memory',
      'const a = []; for (;;) a.push(new Array(1e6).fill(1));',
      {
        status: 500,
        detail: 'Reactor Runtime Error',
        errors: { error: ['The transform ran out of memory.'] },
      },
    ],
    [
      'a result above its bound',
      'return { body: "x".repeat(6 * 1024 * 1024) };',
      {
        status: 500,
        detail: 'Reactor Runtime Error',
        errors: { error: ['The result of the transform is larger than 5 MiB.'] },
      },
    ],
  ];
  for (const [what, code, expected] of failures) {
    it(`that ends with ${what} is told as a proxy_error, and nothing is sent`, async () => {
      const error = failure(await t.onRequest(code));
      expect(error).to.deep.include({
        title: 'One or more validation errors occurred.',
        ...expected,
      });
      expect(t.origin.received).to.have.length(0);
    });
  }

  it('may choose the whole response', async () => {
    const code = `const { CustomHttpResponseError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
      throw new CustomHttpResponseError({ status: 418, headers: { 'X-Why': 'tea', 'bt-proxy-destination-status': '200' }, body: { a: 1 } });`;
    const { status, body, headers } = await t.onRequest(code);
    expect({ status, body }).to.deep.equal({ status: 418, body: { a: 1 } });
    expect(headers.get('x-why')).to.equal('tea');
    expect(headers.get('bt-proxy-destination-status')).to.equal(null);
    expect(t.origin.received).to.have.length(0);
  });

  it('cannot choose a response that is none', async () => {
    const code = `throw Object.assign(new Error(), { name: 'CustomHttpResponseError', status: 101 });`;
    expect(failure(await t.onRequest(code)).status).to.equal(500);
  });

  it('never sees JSON with two meanings', async () => {
    for (const body of ['{"a":1,"a":2}', '{"a":', '{"n":12345678901234567890}', '\ufeff{}']) {
      const error = failure(
        await t.onRequest('return { headers: {} };', { body, headers: JSON_HEADERS }),
      );
      expect(error.status, body).to.equal(400);
      expect(t.origin.received).to.have.length(0);
    }
    const body = 'a&'.repeat(10_001);
    const error = failure(
      await t.onRequest('return {};', { body, headers: { 'content-type': FORM } }),
    );
    expect(error.status).to.equal(400);
  });

  it('is not run for a caller who may not use the proxy', async () => {
    const { key } = await t.proxies.application({ permissions: ['token:create'] });
    const code = 'await fetch(req.configuration.URL); return { body: "x" };';
    const error = failure(
      await t.onRequest(code, { key }, { configuration: { URL: t.origin.url } }),
    );
    expect(error.status).to.equal(403);
    expect(t.origin.received).to.have.length(0);
  });

  it('is not run for a path that leads out of the base', async () => {
    const code = 'await fetch(req.configuration.URL); return { body: "x" };';
    const draft = { configuration: { URL: t.origin.url } };
    const error = failure(await t.onRequest(code, { path: 'POST /proxy/..;/other' }, draft));
    expect(error.status).to.equal(400);
    expect(t.origin.received).to.have.length(0);
  });

  const lost: Record<string, (id: string) => [line: string, json?: JsonObject]> = {
    'is gone': (id) => [`DELETE /applications/${id}`],
    'is over before its time': (id) => [
      `PUT /applications/${id}`,
      {
        ...{ name: 'Caller', permissions: ['token:use'] },
        expires_at: new Date(Date.now() + 1_000).toISOString(),
      },
    ],
  };
  for (const [how, loss] of Object.entries(lost)) {
    it(`cannot pass on what it computed once the key of its caller ${how}`, async () => {
      const { id, key } = await t.proxies.application({ permissions: ['token:use'] });
      const stopping = await startOrigin(async (socket) => {
        const [line, json] = loss(id);
        await t.proxies.manage(line, json === undefined ? {} : { json });
        setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'), 1_100);
      });
      try {
        const code = 'await fetch(req.configuration.URL); return { body: "late" };';
        const draft = { configuration: { URL: stopping.url } };
        const { status } = await t.onRequest(code, { key }, draft);
        expect(stopping.received).to.have.length(1);
        expect(status).to.equal(401);
        expect(t.origin.received).to.have.length(0);
      } finally {
        await stopping.close();
      }
    });
  }
});
