/**
 * What never leaves: wrong keys, foreign proxies, paths out of the base, smuggled framing (attacks C-13,
 * C-14). Each is a `proxy_error` with its status, and the destination hears nothing.
 */
import { expect } from 'chai';
import { OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawAnswer, request, sendRaw, valuesOf } from './raw-client.ts';

const USE = {
  rules: [{ priority: 1, container: '/', transform: 'mask', permissions: ['token:use'] }],
};

describe('refusals of a proxy', () => {
  let proxies: Proxies;
  let origin: Origin;
  let proxyKey: string;
  before(async () => {
    proxies = await startProxies({
      SALLYPORT_EPHEMERAL_PROXY: 'true',
      // Notices of changes never arrive: what is taken away stops without them.
      DATABASE_DIRECT_URL: 'postgres://127.0.0.1:1/none',
    });
    origin = await startOrigin(OK);
    proxyKey = (await proxies.proxy({ destination_url: `${origin.url}/base` })).key;
  });
  after(async () => {
    await proxies?.stop();
    await origin?.close();
  });
  beforeEach(() => origin.received.splice(0));

  async function send(line: string, lines: string[], body = ''): Promise<RawAnswer> {
    const bytes = request(line, [...lines, 'Connection: close'], body);
    return parseAnswer((await sendRaw(proxies.port, bytes)).text);
  }

  function expectRefused(answer: RawAnswer, status: number): Record<string, unknown> {
    expect(answer.status).to.equal(status);
    expect(valuesOf(answer, 'bt-proxy-destination-status')).to.deep.equal([]);
    expect(valuesOf(answer, 'content-type')).to.deep.equal(['application/json; charset=utf-8']);
    expect(valuesOf(answer, 'bt-trace-id')).to.have.length(1);
    expect(valuesOf(answer, 'access-control-allow-origin')).to.deep.equal(['*']);
    const { proxy_error, ...others } = JSON.parse(answer.body);
    expect(others).to.deep.equal({});
    expect(proxy_error.status).to.equal(status);
    expect(proxy_error.errors).to.be.an('object');
    expect(origin.received).to.deep.equal([]);
    return proxy_error;
  }

  const keys = (): string[] => [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${proxyKey}`];

  it('knows who calls which proxy', async () => {
    const [apiKey = '', proxy = ''] = keys();
    expectRefused(await send('GET /proxy', [proxy]), 401);
    expectRefused(await send('GET /proxy', [proxy, 'BT-API-KEY: key_wrong']), 401);
    expectRefused(await send('GET /proxy', [apiKey, 'BT-PROXY-KEY: nonsense']), 404);
    expectRefused(await send('GET /proxy', [apiKey, `BT-PROXY-KEY: ${'1'.repeat(22)}`]), 404);
    const { title } = expectRefused(await send('GET /proxy', [apiKey]), 400);
    expect(title).to.equal('Invalid proxy request');
    const weak = await proxies.application({ permissions: ['token:create'] });
    expectRefused(await send('GET /proxy', [`BT-API-KEY: ${weak.key}`, proxy]), 403);
  });

  it('takes one proxy key: two that agree pass, two that differ do not', async () => {
    const twice = await send(`GET /proxy?bt-proxy-key=${proxyKey}`, keys());
    expect(twice.status).to.equal(200);
    origin.received.splice(0);
    const other = '2'.repeat(22);
    expectRefused(await send(`GET /proxy?bt-proxy-key=${other}`, keys()), 400);
    expectRefused(await send('GET /proxy', [...keys(), `BT-PROXY-KEY: ${proxyKey}`]), 400);
    const [apiKey = ''] = keys();
    const query = `bt-proxy-key=${proxyKey}&BT-PROXY-KEY=${other}`;
    expectRefused(await send(`GET /proxy?${query}`, [apiKey]), 400);
  });

  it('asks for no body of a request whose path it refuses', async () => {
    const framing = ['Content-Type: text/plain', 'Content-Length: 100000'];
    const lines = [...keys(), ...framing, 'Expect: 100-continue'];
    for (const path of ['/..;/other', '/%252e%252e/other']) {
      // The body never comes: whoever waited for it would not answer.
      const bytes = request(`POST /proxy${path}`, lines);
      const { text } = await sendRaw(proxies.port, bytes, (got) => got.includes('proxy_error'));
      expect(text).to.not.contain('100 Continue');
      expectRefused(parseAnswer(text), 400);
    }
  });

  it('asks for no body that is announced as too large', async () => {
    const framing = ['Content-Type: application/json', `Content-Length: ${6 * 1024 * 1024}`];
    const bytes = request('POST /proxy', [...keys(), ...framing, 'Expect: 100-continue']);
    const { text } = await sendRaw(proxies.port, bytes, (got) => got.includes('proxy_error'));
    expect(text).to.not.contain('100 Continue');
    expectRefused(parseAnswer(text), 413);
  });

  it('finds no proxy of another tenant, in either direction', async () => {
    const other = await proxies.control.addTenant('Other');
    const { key } = await proxies.application(USE, other);
    expectRefused(
      await send('GET /proxy', [`BT-API-KEY: ${key}`, `BT-PROXY-KEY: ${proxyKey}`]),
      404,
    );
    const open = await proxies.proxy({ destination_url: origin.url, require_auth: false }, other);
    const [apiKey = ''] = keys();
    expectRefused(await send('GET /proxy', [apiKey, `BT-PROXY-KEY: ${open.key}`]), 404);
  });

  it('serves an anonymous proxy to anybody, but brings nothing out for them', async () => {
    const { key } = await proxies.proxy({ destination_url: origin.url, require_auth: false });
    const anonymous = [`BT-PROXY-KEY: ${key}`];
    expect((await send('GET /proxy', anonymous)).status).to.equal(200);
    origin.received.splice(0);
    expectRefused(await send('GET /proxy', [...anonymous, 'BT-API-KEY: key_wrong']), 401);
    const body = `{"a":"{{ ${await proxies.token('secret')} }}"}`;
    const json = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    expectRefused(await send('POST /proxy', [...anonymous, ...json], body), 403);
  });

  it('stops with the key, the application, the proxy and its right, from the next request on', async () => {
    const { key, id } = await proxies.proxy({ destination_url: origin.url });
    const caller = await proxies.application(USE);
    const lines = [`BT-API-KEY: ${caller.key}`, `BT-PROXY-KEY: ${key}`];
    expect((await send('GET /proxy', lines)).status).to.equal(200);
    const path = `/applications/${caller.id}`;
    const weaker = { name: 'Caller', permissions: ['token:create'] };
    await proxies.manage(`PUT ${path}`, { json: weaker });
    origin.received.splice(0);
    expectRefused(await send('GET /proxy', lines), 403);
    await proxies.manage(`DELETE ${path}`);
    expectRefused(await send('GET /proxy', lines), 401);
    const [apiKey = ''] = keys();
    const good = [apiKey, `BT-PROXY-KEY: ${key}`];
    const elsewhere = await startOrigin(OK);
    const moved = { name: 'Proxy', destination_url: elsewhere.url };
    expect((await send('GET /proxy', good)).status).to.equal(200);
    await proxies.manage(`PUT /proxies/${id}`, { json: moved });
    origin.received.splice(0);
    expect((await send('GET /proxy', good)).status).to.equal(200);
    expect([elsewhere.received.length, origin.received.length]).to.deep.equal([1, 0]);
    await proxies.manage(`DELETE /proxies/${id}`);
    expectRefused(await send('GET /proxy', good), 404);
    await elsewhere.close();
  });

  it('stops serving anybody at once when an anonymous proxy is closed, moved or deleted', async () => {
    const draft = { name: 'Proxy', destination_url: origin.url, require_auth: false };
    const { key, id } = await proxies.proxy(draft);
    const lines = [`BT-PROXY-KEY: ${key}`];
    const elsewhere = await startOrigin(OK);
    const put = (changes: object): Promise<unknown> =>
      proxies.manage(`PUT /proxies/${id}`, { json: { ...draft, ...changes } });
    for (let round = 0; round < 5; round += 1) {
      expect((await send('GET /proxy', lines)).status).to.equal(200);
      origin.received.splice(0);
      await put({ require_auth: true });
      expectRefused(await send('GET /proxy', lines), 401);
      await put({ destination_url: elsewhere.url });
      expect((await send('GET /proxy', lines)).status).to.equal(200);
      expect([elsewhere.received.splice(0).length, origin.received.length]).to.deep.equal([1, 0]);
      await put({});
    }
    await proxies.manage(`DELETE /proxies/${id}`);
    expectRefused(await send('GET /proxy', lines), 404);
    await elsewhere.close();
  });

  it('stays within the base of the destination', async () => {
    const escapes = [
      ...[
        '/..',
        '/../x',
        '/a/../../x',
        '/%2e%2e/x',
        '/.%2E/x',
        '/..;/x',
        '/..;a=b/x',
        '/%2e%2e%3b/x',
      ],
      ...[
        '/%252e%252e/x',
        '/%25252e%25252e/x',
        '/a%2f..%2fx',
        '/a%5c..%5cx',
        '/..%5cx',
        '/%c0%ae%c0%ae/x',
      ],
      ...['/..%00/x', '/..%3f/x', '/..%20/x', '/a\\..\\x', '/.', '/%u002e%u002e/x'],
    ];
    for (const path of escapes) expectRefused(await send(`GET /proxy${path}`, keys()), 400);
    for (const path of ['//evil.example', '/a//b']) {
      expectRefused(await send(`GET /proxy${path}`, keys()), 404);
    }
    expect((await send('GET http://evil.example/proxy', keys())).status).to.equal(400);
    for (const path of ['/...', '/..a', '/a..', '/%2e%2ea', '/a;b=c', '/a%252fb', '/.well-known']) {
      expect((await send(`GET /proxy${path}`, keys())).status, path).to.equal(200);
      expect(origin.received.pop()?.line).to.equal(`GET /base${path} HTTP/1.1`);
    }
  });

  it('refuses what two readers could read differently', async () => {
    const bodies: [number, string[], string][] = [
      [400, ['Content-Length: 3', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
      [400, ['Content-Length: 3', 'Content-Length: 3'], 'abc'],
      [400, ['Content-Length: 3, 3'], 'abc'],
      [400, ['Content-Length: +3'], 'abc'],
      [400, ['Transfer-Encoding: xchunked'], '0\r\n\r\n'],
      [400, ['Transfer-Encoding: chunked, identity'], '0\r\n\r\n'],
      [400, ['Host: evil.example'], ''],
      [400, ['Upgrade: websocket', 'Connection: upgrade'], ''],
      [417, ['Expect: something'], ''],
    ];
    for (const [status, lines, body] of bodies) {
      const bytes = request('POST /proxy', [...keys(), ...lines], body);
      const answer = parseAnswer((await sendRaw(proxies.port, bytes)).text);
      expect(answer.status, lines.join()).to.equal(status);
      expect(origin.received, lines.join()).to.deep.equal([]);
    }
    const folded = request('GET /proxy', [...keys(), 'X-A: 1\r\n folded']);
    expect(parseAnswer((await sendRaw(proxies.port, folded)).text).status).to.equal(400);
    const latin = request('GET /proxy', [...keys(), 'X-A: caf\xe9']);
    expectRefused(parseAnswer((await sendRaw(proxies.port, latin)).text), 400);
    const trace = await send('TRACE /proxy', keys());
    expectRefused(trace, 405);
  });

  it('reads at most 5 MiB of a body that it looks into', async () => {
    const type = 'Content-Type: application/json';
    const length = 5 * 1024 * 1024 + 1;
    const announced = request(
      'POST /proxy',
      [...keys(), type, `Content-Length: ${length}`],
      ' '.repeat(length),
    );
    expectRefused(parseAnswer((await sendRaw(proxies.port, announced)).text), 413);
    const chunk = `${length.toString(16)}\r\n${' '.repeat(length)}\r\n0\r\n\r\n`;
    const chunked = request('POST /proxy', [...keys(), type, 'Transfer-Encoding: chunked'], chunk);
    expectRefused(parseAnswer((await sendRaw(proxies.port, chunked)).text), 413);
    const coded = request(
      'POST /proxy',
      [...keys(), type, 'Content-Encoding: compress', 'Content-Length: 2', 'Connection: close'],
      '{}',
    );
    expectRefused(parseAnswer((await sendRaw(proxies.port, coded)).text), 415);
  });

  it('takes a destination from BT-PROXY-URL of a private application, where that is allowed', async () => {
    const [apiKey = ''] = keys();
    const to = (url: string): string => `BT-PROXY-URL: ${url}`;
    const answer = await send('GET /proxy/x?a=1', [apiKey, to(`${origin.url}/there`)]);
    expect(answer.status).to.equal(200);
    expect(origin.received.pop()?.line).to.equal('GET /there/x?a=1 HTTP/1.1');
    const both = await send('GET /proxy', [...keys(), to('https://ignored.example')]);
    expect(both.status).to.equal(200);
    origin.received.splice(0);
    expectRefused(await send('GET /proxy', [to(origin.url)]), 401);
    const open = await proxies.application({ type: 'public', permissions: ['token:create'] });
    expectRefused(await send('GET /proxy', [`BT-API-KEY: ${open.key}`, to(origin.url)]), 403);
    const refused = [
      ...[
        'http://169.254.169.254/',
        'https://10.0.0.1/',
        'file:///etc/passwd',
        'https://u:p@e.example',
      ],
      ...['https://e.example/#a', 'http://e.example/', 'https://3232235777/', 'nonsense', ''],
    ];
    for (const url of refused) expectRefused(await send('GET /proxy', [apiKey, to(url)]), 400);
  });

  it('does not confuse its path with those beside it', async () => {
    const answer = await send('GET /proxyx', keys());
    expect(answer.body).to.not.contain('proxy_error');
    expect(answer.status).to.equal(404);
    const list = await send('GET /proxies', [
      `BT-API-KEY: ${proxies.control.tenant.managementKey}`,
    ]);
    expect(list.status).to.equal(200);
  });
});
