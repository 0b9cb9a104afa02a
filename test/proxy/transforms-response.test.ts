/** Response transforms: only of answers that are a success (spec: Proxies; facts 2.3 and 10.3). */
import { expect } from 'chai';
import type { JsonObject } from '../support/http-call.ts';
import { FORM, failure, Transforming, transform } from './transforming.ts';

describe('a response transform', () => {
  let t: Transforming;
  before(async () => {
    t = await Transforming.start();
  });
  after(() => t?.stop());
  beforeEach(() => t.reset());

  it('gets the parsed body and the headers, and replaces both', async () => {
    t.answer('{"token":"t1","n":1}', {
      headers: ['Content-Type: application/json', 'X-Old: a', 'Set-Cookie: c=1', 'Set-Cookie: d=2'],
    });
    const code = `return { body: req.args, headers: { ...req.args.headers, 'X-Old': 'b' } };`;
    const { status, body, headers } = await t.onResponse(code);
    expect(status).to.equal(200);
    const { body: seenBody, headers: seenHeaders } = body as {
      body: unknown;
      headers: JsonObject;
    };
    expect(Object.keys(body)).to.deep.equal(['body', 'headers']);
    expect(seenBody).to.deep.equal({ token: 't1', n: 1 });
    expect(seenHeaders).to.deep.include({ 'X-Old': 'a', 'Set-Cookie': ['c=1', 'd=2'] });
    expect(headers.get('x-old')).to.equal('b');
    expect(headers.getSetCookie()).to.deep.equal(['c=1', 'd=2']);
    expect(headers.get('bt-proxy-destination-status')).to.equal('200');
  });

  it('detokenizes and tokenizes with the application of the proxy', async () => {
    const pan = await t.proxies.token('secret-value');
    const { id } = await t.proxies.application({
      rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }],
    });
    t.answer(`{"token":"${pan}"}`);
    const code =
      'return { body: await req.bt.detokenize({ v: "{{" + req.args.body.token + "}}" }) };';
    const { body } = await t.onResponse(code, {}, { application: { id } });
    expect(body).to.deep.equal({ v: 'secret-value' });
  });

  it('is not run unless the destination answered 2xx', async () => {
    for (const status of ['302 Found', '404 Not Found', '500 Oops']) {
      t.answer('{"a":1}', { status });
      const {
        status: got,
        body,
        headers,
      } = await t.onResponse('return { body: "changed" };', {
        path: 'POST /proxy/x',
      });
      expect([got, body]).to.deep.equal([Number(status.slice(0, 3)), { a: 1 }]);
      expect(headers.get('bt-proxy-destination-status')).to.equal(status.slice(0, 3));
    }
    t.answer('{"a":1}', { status: '201 Created' });
    expect((await t.onResponse('return { body: { changed: true } };')).body).to.deep.equal({
      changed: true,
    });
  });

  it('gets text where the destination answers no JSON, and numbers as JavaScript has them', async () => {
    const code = `const { body } = req.args;
      const headers = { 'content-type': 'application/json' };
      return { body: { type: typeof body, value: body }, headers };`;
    const cases: [string, string, JsonObject][] = [
      ['{"a":', 'application/json', { type: 'string', value: '{"a":' }],
      ['<a/>', 'text/xml', { type: 'string', value: '<a/>' }],
      ['', 'application/json', { type: 'object', value: null }],
      ['{"n":1,"n":2}', 'application/json', { type: 'object', value: { n: 2 } }],
      ['\xef\xbb\xbf{"n":1}', 'application/json', { type: 'object', value: { n: 1 } }],
      ['a=1&a=2', FORM, { type: 'object', value: { a: ['1', '2'] } }],
      ['{"d":"\\ud800"}', 'application/json', { type: 'object', value: { d: '\ud800' } }],
    ];
    for (const [sent, type, expected] of cases) {
      t.answer(sent, { headers: [`Content-Type: ${type}`] });
      const { body, text } = await t.onResponse(code);
      expect(body, text).to.deep.equal(expected);
    }
  });

  it('passes bytes that are no text unharmed', async () => {
    const bytes = '\x00\xff\xfe\x80A';
    t.answer(bytes, { headers: ['Content-Type: image/png'] });
    const { key } = await t.proxies.proxy({
      destination_url: t.origin.url,
      response_transform: transform('return { body: req.args.body };'),
    });
    const response = await fetch(`${t.proxies.url}/proxy`, {
      headers: { 'BT-API-KEY': t.proxies.key, 'BT-PROXY-KEY': key },
    });
    expect(Buffer.from(await response.arrayBuffer()).toString('latin1')).to.equal(bytes);
  });

  it('cannot forge our headers or frame the answer', async () => {
    const code = `return { body: { a: 1 }, headers: { 'BT-PROXY-DESTINATION-STATUS': '500',
      'content-length': '1', 'content-encoding': 'gzip', 'transfer-encoding': 'x', connection: 'close' } };`;
    const { status, body, headers } = await t.onResponse(code);
    expect({ status, body }).to.deep.equal({ status: 200, body: { a: 1 } });
    expect(headers.get('bt-proxy-destination-status')).to.equal('200');
    expect(headers.get('content-length')).to.equal('7');
    expect(headers.get('content-encoding')).to.equal(null);
  });

  it('that fails hides the answer and says so without a destination status', async () => {
    t.answer('{"secret":"of the destination"}');
    const answered = await t.onResponse('throw new Error("boom");');
    expect(failure(answered).errors).to.deep.equal({ error: ['boom'] });
    expect(answered.text).to.not.contain('of the destination');
    expect(failure(await t.onResponse('return { headers: { a: "b\\n" } };')).status).to.equal(500);
  });

  it('may choose the whole response', async () => {
    const code = `const { CustomHttpResponseError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
      throw new CustomHttpResponseError({ status: 409, headers: { a: 'b' }, body: { seen: req.args.body } });`;
    t.answer('{"x":1}');
    const { status, body, headers } = await t.onResponse(code);
    expect({ status, body }).to.deep.equal({ status: 409, body: { seen: { x: 1 } } });
    expect(headers.get('bt-proxy-destination-status')).to.equal(null);
  });
});
