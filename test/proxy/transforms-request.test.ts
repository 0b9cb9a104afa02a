/** Request transforms: what their code gets and what it sends (spec: Proxies; facts 10.3). */
import { expect } from 'chai';
import { randomCardNumber } from '../support/card-numbers.ts';
import { call, type JsonObject } from '../support/http-call.ts';
import { FORM, JSON_HEADERS, Transforming, transform } from './transforming.ts';

const ECHO = 'return { body: req.args, headers: { "content-type": "application/json" } };';

describe('a request transform', () => {
  let t: Transforming;
  before(async () => {
    t = await Transforming.start();
  });
  after(() => t?.stop());
  beforeEach(() => t.reset());

  it('gets the detokenized body, headers in their casing, method, path and query', async () => {
    const number = randomCardNumber();
    const pan = await t.proxies.token(number);
    await t.onRequest(ECHO, {
      ...{ path: 'PATCH /proxy/a/b%20c?x=1&y=%7b', body: `{"pan":"{{ ${pan} }}","n":1.50}` },
      headers: { 'content-type': 'application/json', 'MY-API-KEY': 'k', Accept: 'a/b' },
    });
    const { headers, ...rest } = t.receivedJson();
    expect(rest).to.deep.equal({
      ...{
        body: { pan: number, n: 1.5 },
        method: 'PATCH',
        path: '/a/b%20c',
        query: '?x=1&y=%7b',
      },
    });
    const given = headers as JsonObject;
    expect(given['MY-API-KEY'] ?? given['my-api-key']).to.equal('k');
    const ours = Object.keys(given).filter((name) => /^(?:bt-|host$|content-length$)/i.test(name));
    expect(ours).to.deep.equal([]);
    expect(t.received().line).to.equal('PATCH /a/b%20c?x=1&y=%7b HTTP/1.1');
  });

  it('gets forms as objects, other text as text, no body as null, bytes as characters', async () => {
    const bodies: [string | Uint8Array<ArrayBuffer> | undefined, string, unknown][] = [
      [
        'a=1&b=%C3%BC+x&a=2&__proto__=p',
        FORM,
        JSON.parse('{"a":["1","2"],"b":"ü x","__proto__":"p"}'),
      ],
      ['<a>ü</a>', 'application/xml', '<a>ü</a>'],
      ['"text"', 'application/json', 'text'],
      ['', 'application/json', null],
      [Uint8Array.from([0, 0xff, 0x41]), 'application/octet-stream', '\0ÿA'],
    ];
    for (const [body, type, expected] of bodies) {
      t.origin.received.splice(0);
      const rest = body === undefined ? {} : { body };
      const { status, text } = await t.onRequest(ECHO, {
        ...rest,
        headers: { 'content-type': type },
      });
      expect(status, text).to.equal(200);
      expect(t.receivedJson().body).to.deep.equal(expected);
    }
    t.origin.received.splice(0);
    await t.onRequest(ECHO, { path: 'GET /proxy' });
    expect(t.receivedJson()).to.deep.include({ body: null, path: '', query: '', method: 'GET' });
  });

  it('sends what it returns: values as JSON or as a form, texts as they are', async () => {
    const form = { body: 'a=1&b=2', headers: { 'content-type': FORM } };
    await t.onRequest('return { body: { ...req.args.body, b: ["x y", 3], c: { d: 1 } } };', form);
    expect(t.received().body).to.equal('a=1&b=x+y&b=3&c=%7B%22d%22%3A1%7D');
    expect(t.header('content-type')).to.deep.equal([FORM]);
    t.origin.received.splice(0);
    await t.onRequest('return { body: "<a/>", headers: { "Content-Type": "text/xml" } };', form);
    expect([t.received().body, ...t.header('content-type')]).to.deep.equal(['<a/>', 'text/xml']);
    expect(t.header('content-length')).to.deep.equal(['4']);
    t.origin.received.splice(0);
    await t.onRequest('return { raw: { body: [1], headers: { a: "b" } } };', form);
    expect([t.received().body, ...t.header('a')]).to.deep.equal(['[1]', 'b']);
    expect(t.header('content-type')).to.deep.equal(['application/json']);
  });

  it('keeps what it does not return: the very bytes, or the headers', async () => {
    const pan = await t.proxies.token('4242');
    const sent = {
      body: `{ "n": 1.50, "p":"{{${pan}}}" }`,
      headers: { ...JSON_HEADERS, 'x-a': 'b' },
    };
    await t.onRequest('return { headers: { ...req.args.headers, "x-new": "c" } };', sent);
    expect(t.received().body).to.equal('{ "n": 1.50, "p":"4242" }');
    expect([...t.header('x-a'), ...t.header('x-new')]).to.deep.equal(['b', 'c']);
    t.origin.received.splice(0);
    await t.onRequest('return { body: { a: 1 } };', sent);
    expect([t.received().body, ...t.header('x-a')]).to.deep.equal(['{"a":1}', 'b']);
  });

  it('gets its configuration and acts as its application through bt', async () => {
    const { id } = await t.proxies.application({
      rules: [
        {
          priority: 1,
          container: '/',
          transform: 'reveal',
          permissions: ['token:create', 'token:read'],
        },
      ],
    });
    const code = `
      const { id } = await req.bt.tokens.create({ type: 'token', data: req.args.body.pan });
      return { body: { token: id, key: req.configuration.KEY } };`;
    const draft = { application: { id }, configuration: { KEY: 'k1' }, require_auth: false };
    const rest = { key: undefined, body: '{"pan":"secret-value"}', headers: JSON_HEADERS };
    const { status, text } = await t.onRequest(code, rest, draft);
    expect(status, text).to.equal(200);
    const sent = JSON.parse(t.received().body) as { token: string; key: string };
    expect(sent.key).to.equal('k1');
    expect(t.received().body).to.not.contain('secret-value');
    const { body } = await call(t.proxies.url, `GET /tokens/${sent.token}`, { key: t.proxies.key });
    expect(body).to.deep.include({ data: 'secret-value', created_by: id });
  });

  it('has no bt without an application', async () => {
    await t.onRequest('return { body: { bt: req.bt, none: req.configuration } };');
    expect(JSON.parse(t.received().body)).to.deep.equal({ bt: null, none: {} });
  });

  it('cannot set what frames the request, its host, or our headers', async () => {
    const code = `return { body: 'abc', headers: {
      Host: 'evil.example', 'Content-Length': '999', 'transfer-encoding': 'chunked',
      Connection: 'upgrade', Upgrade: 'h2c', TE: 'trailers', 'BT-PROXY-KEY': 'x', 'bt-trace-id': 'y',
      'x-number': 5, 'x-none': undefined, 'x-null': null } };`;
    const { status, text } = await t.onRequest(code);
    expect(status, text).to.equal(200);
    expect(t.header('host')).to.deep.equal([`localhost:${t.origin.port}`]);
    expect(t.header('content-length')).to.deep.equal(['3']);
    for (const name of ['transfer-encoding', 'upgrade', 'te', 'bt-proxy-key', 'x-none', 'x-null']) {
      expect(t.header(name), name).to.deep.equal([]);
    }
    expect(t.header('x-number')).to.deep.equal(['5']);
    expect(t.header('bt-trace-id')).to.not.deep.equal(['y']);
  });

  it('sends one content type when it adds its own in another casing', async () => {
    const code = 'return { body: "x", headers: { ...req.args.headers, "Content-type": "a/b" } };';
    await t.onRequest(code, { body: '{}', headers: JSON_HEADERS });
    expect(t.header('content-type')).to.deep.equal(['a/b']);
  });

  it('runs whatever content type the caller claims', async () => {
    for (const type of ['application/octet-stream', 'image/png', 'x']) {
      t.origin.received.splice(0);
      await t.onRequest('return { body: "checked" };', {
        body: 'secret',
        headers: { 'content-type': type },
      });
      expect(t.received().body).to.equal('checked');
    }
  });

  it('of one tenant never runs with what another left in the sandbox', async () => {
    const other = await t.proxies.control.addTenant('Other');
    const { key } = await t.proxies.application({ permissions: ['token:use'] }, other);
    const code = 'globalThis.seen = (globalThis.seen ?? 0) + 1; return { body: { seen } };';
    for (const rest of [{}, { tenant: other, key }, {}]) {
      t.origin.received.splice(0);
      await t.send({ request_transform: transform(code) }, rest);
      expect(JSON.parse(t.received().body)).to.deep.equal({ seen: 1 });
    }
  });

  it('gives a body to a request that had none, in plain whatever the request says of its coding', async () => {
    const headers = { 'content-encoding': 'gzip', 'content-type': 'text/plain' };
    await t.onRequest('return { body: "plain" };', { path: 'POST /proxy', headers });
    expect(t.received().body).to.equal('plain');
    expect(t.header('content-encoding')).to.deep.equal([]);
    t.reset();
    await t.onRequest('return { headers: req.args.headers };', { path: 'POST /proxy', headers });
    expect(t.received().body).to.equal('');
    expect(t.header('content-encoding')).to.deep.equal(['gzip']);
  });
});
