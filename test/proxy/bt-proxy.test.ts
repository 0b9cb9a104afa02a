/** `req.bt.proxy.*`: reactors and transforms that send requests through proxies, end to end. */
import { expect } from 'chai';
import { randomCardNumber } from '../support/card-numbers.ts';
import { call, type JsonObject } from '../support/http-call.ts';
import { Transforming, transform } from './transforming.ts';

const USE = {
  rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:use'] }],
};
/** Calls `bt.proxy[args.method]` with the other arguments; a failure of that is what it answers. */
const CALLER = `
  const { method, bytes, ...options } = req.args;
  if (bytes) options.body = new Uint8Array(bytes).fill(255);
  if (options.pan) options.body = { pan: '{' + '{ ' + options.pan + ' }' + '}', camelCase: 1 };
  try {
    const data = await req.bt.proxy[method](options);
    return { raw: Buffer.isBuffer(data) ? { bytes: [...data] } : { data } };
  } catch ({ name, message, status, data }) { return { raw: { name, message, status, data } }; }`;
/** A transform that goes through the same proxy again. */
const LOOP = `
  const { headers, path } = req.args;
  const key = path.slice(1);
  await req.bt.proxy.post({ path, headers: { 'BT-PROXY-KEY': key } });
  return { headers };`;

describe('bt.proxy of a script', () => {
  let t: Transforming;
  let application: { id: string; key: string };
  let reactor: string;

  const reactorOf = async (owner: { id: string }, body = CALLER): Promise<string> => {
    const json = { name: 'R', application: { id: owner.id }, ...transform(body) };
    return String((await t.proxies.manage('POST /reactors', { json })).id);
  };
  const run = async (args: JsonObject, id = reactor): Promise<JsonObject> => {
    const { key, url } = t.proxies;
    const rest = { key, json: { args } };
    const { status, text, body } = await call<JsonObject>(url, `POST /reactors/${id}/react`, rest);
    expect(status, text).to.equal(200);
    return body.raw as JsonObject;
  };
  const proxy = (rest: object = {}) =>
    t.proxies.proxy({ destination_url: `${t.origin.url}/base`, ...rest });
  const through = async (args: JsonObject, rest: object = {}): Promise<JsonObject> => {
    const { key } = await proxy(rest);
    const headers = { 'BT-PROXY-KEY': key, ...(args.headers as object) };
    return run({ method: 'post', ...args, headers });
  };

  before(async () => {
    t = await Transforming.start();
    application = await t.proxies.application(USE);
    reactor = await reactorOf(application);
  });
  after(() => t?.stop());
  beforeEach(() => t.reset());

  it('sends body, headers, path and query, with the values of tokens put in', async () => {
    const number = randomCardNumber();
    const pan = await t.proxies.token(number);
    t.answer('{"snake_case":{"a_b":1}}');
    const args = { pan, path: '/pay', query: { x_Y: '1&2', l: [1, 2] }, headers: { 'X-Own': 'a' } };
    expect(await through(args)).to.deep.equal({ data: { snake_case: { a_b: 1 } } });
    const { line, body } = t.received();
    expect(line).to.equal('POST /base/pay?x_Y=1%262&l[]=1&l[]=2 HTTP/1.1');
    expect(JSON.parse(body)).to.deep.equal({ pan: number, camelCase: 1 });
    expect(t.header('x-own')).to.deep.equal(['a']);
    expect(t.header('content-type')).to.deep.equal(['application/json']);
    expect([t.header('bt-proxy-key'), t.header('bt-api-key')]).to.deep.equal([[], []]);
  });

  it('has each method, without a body where the client sends none', async () => {
    for (const method of ['get', 'post', 'put', 'patch', 'delete']) {
      t.reset();
      await through({
        method,
        body: 'plain',
        path: 'p',
        headers: { 'content-type': 'text/plain' },
      });
      const expected = ['get', 'delete'].includes(method) ? '' : 'plain';
      expect([t.received().line, t.received().body]).to.deep.equal([
        ...[`${method.toUpperCase()} /base/p HTTP/1.1`, expected],
      ]);
    }
  });

  it('is answered with headers when asked, bytes as bytes, compressed text as text', async () => {
    t.answer('hello', { headers: ['X-A: 1', 'X-A: 2', 'Set-Cookie: c', 'BT-Odd: x'] });
    const { data } = (await through({ includeResponseHeaders: true })) as { data: JsonObject };
    expect(data.data).to.equal('hello');
    expect(data.headers).to.deep.equal({ 'x-a': '1, 2', 'set-cookie': ['c'] });
    t.answer('\xff\0', { headers: ['Content-Type: image/png'] });
    expect(await through({})).to.deep.equal({ bytes: [255, 0] });
    const { gzipSync } = await import('node:zlib');
    t.answer(gzipSync('{"a":1}').toString('latin1'), { headers: ['Content-Encoding: gzip'] });
    expect(await through({})).to.deep.equal({ data: { a: 1 } });
  });

  it('fails with status and raw data of the destination, or with a proxy_error', async () => {
    t.answer('{"err_code":5}', { status: '422 No' });
    expect(await through({})).to.deep.equal({
      ...{ name: 'BasisTheoryApiError', message: 'Request failed with status code 422' },
      ...{ status: 422, data: { err_code: 5 } },
    });
    const unknown = await run({ method: 'get', headers: {} });
    expect(unknown.status).to.equal(400);
    expect((unknown.data as JsonObject).proxy_error).to.include({ status: 400 });
  });

  it('goes through the transforms of the proxy, both ways', async () => {
    t.answer('{"a":1}');
    const rest = {
      request_transform: transform('return { body: { sent: req.args.body } };'),
      response_transform: transform('return { body: { got: req.args.body } };'),
    };
    expect(await through({ body: { x: 1 } }, rest)).to.deep.equal({ data: { got: { a: 1 } } });
    expect(JSON.parse(t.received().body)).to.deep.equal({ sent: { x: 1 } });
  });

  it('has the rights of its application, at that moment, and no other', async () => {
    const reader = await t.proxies.application({ permissions: ['token:read'] });
    const { key } = await proxy();
    const args = { method: 'post', headers: { 'BT-PROXY-KEY': key } };
    expect(await run(args, await reactorOf(reader))).to.include({ status: 403 });
    const withKey = { ...args, headers: { ...args.headers, 'BT-API-KEY': t.proxies.key } };
    expect(await run(withKey, await reactorOf(reader))).to.include({ status: 400 });
    const other = await t.proxies.control.addTenant('Other');
    const theirs = await t.proxies.proxy({ destination_url: t.origin.url }, other);
    const foreign = { method: 'post', headers: { 'BT-PROXY-KEY': theirs.key } };
    expect(await run(foreign)).to.include({ status: 404 });
    expect(t.origin.received).to.have.length(0);
  });

  it('refuses paths out of the base, reserved headers and what is no header', async () => {
    const paths = ['/../x', '/%2e%2e/x', '//x', '/a\r\nX: y', '/a#b', '/\u0100'];
    for (const path of paths) {
      const { status } = await through({ path });
      expect(status, path).to.be.oneOf([400, 404]);
    }
    const headers = [
      ...[{ 'BT-PROXY-KEEP-ALIVE': 'timeout=1' }, { 'bt-proxy-connection': 'close' }],
      ...[{ 'X\r\nY': 'a' }, { X: 'a\r\nY: b' }, { 'Transfer-Encoding': 'chunked' }],
      ...[{ 'bt-proxy-key': 'another' }, { Upgrade: 'h2c' }],
    ];
    for (const one of headers) {
      expect((await through({ headers: one })).status, JSON.stringify(one)).to.equal(400);
    }
    expect(t.origin.received).to.have.length(0);
    await through({
      headers: { Host: 'other.example', 'Content-Length': '5', 'BT-TRACE-ID': 'x' },
    });
    expect(t.header('host')).to.deep.equal([`localhost:${t.origin.port}`]);
    expect(t.header('bt-trace-id')).to.not.include('x');
  });

  it('takes 5 MiB there and no more, and 10 MiB back', async () => {
    const most = 5 * 1024 * 1024;
    await through({ bytes: most });
    expect(t.received().body).to.have.length(most);
    expect(await through({ bytes: most + 1 })).to.include({ status: 413 });
    t.answer('x'.repeat(10 * 1024 * 1024 + 1));
    expect(await through({})).to.include({ status: 502 });
  });

  it('lets transforms call their proxy again three deep and no deeper', async () => {
    const rest = { application: { id: application.id }, request_transform: transform(LOOP) };
    const { key } = await proxy(rest);
    const { status } = await run({
      ...{ method: 'post', path: `/${key}`, headers: { 'BT-PROXY-KEY': key } },
    });
    expect(status).to.equal(500);
    expect(t.origin.received).to.have.length(0);
    const reactions = await t.proxies.metric('sallyport_proxy_requests_total', {
      outcome: 'transform_failed',
    });
    expect(reactions).to.equal(2);
  });

  it('ends with its run: the connection to the destination is closed', async () => {
    const { key } = await proxy();
    const body = `
      req.bt.proxy.get({ headers: { 'BT-PROXY-KEY': req.args.key } }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 300));
      return { raw: { ended: true } };`;
    t.silence();
    const ended = await run({ key }, await reactorOf(application, body));
    expect(ended).to.deep.equal({ ended: true });
    // Long before the 25 s that a destination has.
    const givenUpAt = Date.now() + 12_000;
    while (t.origin.open() > 0 && Date.now() < givenUpAt) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(t.origin.open()).to.equal(0);
  });
});
