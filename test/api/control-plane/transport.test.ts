import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../../support/control-plane.ts';
import { type Call, call } from '../../support/http-call.ts';
import { exchange } from '../../support/raw-http.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const APPLICATION = { name: 'x', type: 'private', permissions: ['token:create'] };

describe('requests to the control plane', () => {
  let server: TestControlPlane;

  before(async () => {
    server = await startTestControlPlane();
  });
  after(() => server.stop());

  const send = (line: string, options: Call = {}) =>
    call(server.baseUrl, line, { key: server.tenant.managementKey, ...options });

  describe('every answer', () => {
    for (const [line, status] of [
      ['GET /tenants/self', 200],
      ['GET /applications/7', 404],
      ['GET /nowhere', 404],
      ['PATCH /tenants/self', 405],
      ['OPTIONS /tokens', 204],
    ] as const) {
      it(`has a trace id, no-store and CORS headers: ${line}`, async () => {
        const answer = await send(line);
        expect(answer.status).to.equal(status);
        expect(answer.headers.get('bt-trace-id')).to.match(UUID);
        expect(answer.headers.get('cache-control')).to.equal('no-store');
        expect(answer.headers.get('access-control-allow-origin')).to.equal('*');
        expect(answer.headers.get('access-control-expose-headers')).to.contain('bt-trace-id');
      });
    }
  });

  it('believes a trace id from the relay only', async () => {
    const headers = { 'bt-trace-id': 'caller-1', 'sallyport-relay': 'guess' };
    const direct = await send('GET /tenants/self', { headers });
    expect(direct.headers.get('bt-trace-id')).to.match(UUID);
    const relay = { 'bt-trace-id': 'caller-1', 'sallyport-relay': server.installation.relaySecret };
    const relayed = await send('GET /tenants/self', { headers: relay });
    expect(relayed.headers.get('bt-trace-id')).to.equal('caller-1');
    expect(relayed.headers.get('sallyport-relay')).to.equal(null);
    const unsafe = { ...relay, 'bt-trace-id': 'a b"c' };
    const replaced = await send('GET /tenants/self', { headers: unsafe });
    expect(replaced.headers.get('bt-trace-id')).to.match(UUID);
  });

  describe('paths and methods', () => {
    it('takes a trailing slash as the same path and two as none', async () => {
      expect((await send('GET /tenants/self/')).status).to.equal(200);
      for (const path of ['/tenants/self//', '//tenants/self', '/tenants//self']) {
        expect((await send(`GET ${path}`)).status, path).to.equal(404);
      }
    });

    it('is exact about case and dots', async () => {
      expect((await send('GET /Tenants/self')).status).to.equal(404);
      expect((await raw('GET /applications/../tenants/self')).status).to.equal(400);
      expect((await raw('GET /applications/%2e%2e/tenants/self')).status).to.equal(400);
      expect((await raw('GET /applications/%zz')).status).to.equal(400);
    });

    it('answers 405 with the methods that are served', async () => {
      const answer = await send('DELETE /applications');
      expect(answer.status).to.equal(405);
      expect(answer.headers.get('allow')?.split(', ').toSorted()).to.deep.equal([
        'GET',
        'HEAD',
        'OPTIONS',
        'POST',
      ]);
      expect(answer.body).to.include({ title: 'Method Not Allowed', status: 405 });
    });

    it('refuses TRACE and methods it does not know', async () => {
      expect((await raw('TRACE /tenants/self')).status).to.equal(405);
      expect((await raw('PROPFIND /tenants/self')).status).to.equal(405);
      expect((await raw('GeT /tenants/self')).status).to.equal(405);
    });

    it('answers HEAD like GET without the body', async () => {
      const got = await send('GET /tenants/self');
      const head = await send('HEAD /tenants/self');
      expect(head.status).to.equal(200);
      expect(head.text).to.equal('');
      expect(head.headers.get('content-length')).to.equal(String(got.text.length));
    });

    it('ignores a method in a header', async () => {
      const headers = { 'x-http-method-override': 'DELETE' };
      expect((await send('GET /tenants/self', { headers })).status).to.equal(200);
      expect((await send('GET /tenants/self')).status).to.equal(200);
    });

    it('answers a preflight on any path without a key', async () => {
      const answer = await call(server.baseUrl, 'OPTIONS /applications', {
        headers: { origin: 'https://shop.example', 'access-control-request-method': 'POST' },
      });
      expect(answer.status).to.equal(204);
      expect(answer.headers.get('access-control-allow-methods')).to.contain('PUT');
      expect(answer.headers.get('access-control-allow-headers')).to.contain('bt-api-key');
    });

    it('refuses an expectation it does not know', async () => {
      const { status } = await raw('GET /tenants/self', 'Expect: 200-ok\r\n');
      expect(status).to.equal(417);
    });
  });

  describe('bodies', () => {
    const json = JSON.stringify(APPLICATION);
    const post = (options: Call) => send('POST /applications', options);
    const type = (contentType: string) => ({ 'content-type': contentType });

    for (const contentType of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json; charset=utf-16',
      'application/vnd.api+json',
    ]) {
      it(`refuses ${contentType}`, async () => {
        const { status, body } = await post({ body: json, headers: type(contentType) });
        expect(status).to.equal(415);
        expect(body).to.include({ title: 'Unsupported Media Type' });
      });
    }

    const broken: [string, string | Uint8Array<ArrayBuffer>][] = [
      ['an empty body', ''],
      ['half an object', '{'],
      ['a trailing comma', '{"name":"secret-4242",}'],
      ['bytes after the value', `${json}x`],
      ['a byte order mark', `\ufeff${json}`],
      ['invalid UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d])],
      ['a lone surrogate', '{"name":"\\ud800"}'],
      ['a member twice', '{"name":"a","name":"b"}'],
      ['65 levels', '['.repeat(65) + ']'.repeat(65)],
      ['a list', '[]'],
      ['a text', '"x"'],
      ['null', 'null'],
    ];
    for (const [what, body] of broken) {
      it(`answers 400 to ${what}, and repeats none of it`, async () => {
        const answer = await post({ body, headers: type('application/json') });
        expect(answer.status).to.equal(400);
        expect(answer.text).not.to.contain('4242');
      });
    }

    it('reads gzip, and no bomb', async () => {
      const headers = { ...type('application/json'), 'content-encoding': 'gzip' };
      const small = await post({ body: new Uint8Array(gzipSync(json)), headers });
      expect(small.status).to.equal(201);
      const bomb = new Uint8Array(gzipSync(Buffer.alloc(50 * 1024 * 1024)));
      expect((await post({ body: bomb, headers })).status).to.equal(413);
    });

    it('refuses a body over 1 MiB', async () => {
      const body = `{"name":"${'x'.repeat(1024 * 1024)}"}`;
      expect((await post({ body, headers: type('application/json') })).status).to.equal(413);
    });

    it('lets a client wait for 100 only when it may send', async () => {
      const head = `Content-Type: application/json\r\nContent-Length: ${json.length}\r\nExpect: 100-continue\r\n`;
      const refused = await raw('POST /applications', head, 'none');
      expect(refused.status).to.equal(401);
      const key = `BT-API-KEY: ${server.tenant.managementKey}\r\n`;
      const request = `POST /applications HTTP/1.1\r\nHost: x\r\n${key}${head}Connection: close\r\n\r\n`;
      const { answers } = await exchange(server.port, request, 2, ({ status }) =>
        status === 100 ? json : undefined,
      );
      expect(answers.map(({ status }) => status)).to.deep.equal([100, 201]);
    });
  });

  describe('heads that two readers could read differently', () => {
    const key = () => `BT-API-KEY: ${server.tenant.managementKey}\r\n`;
    const many = Array.from({ length: 101 }, (_, n) => `X-${n}: 1\r\n`).join('');
    const heads: [string, number, () => string][] = [
      ['two keys', 400, () => `Host: x\r\n${key()}${key()}`],
      ['two hosts', 400, () => `Host: x\r\nHost: y\r\n${key()}`],
      ['no host', 400, key],
      ['a host that is none', 400, () => `Host: x/y\r\n${key()}`],
      [
        'two framings',
        400,
        () => `Host: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n${key()}`,
      ],
      ['an upgrade', 400, () => `Host: x\r\nUpgrade: h2c\r\n${key()}`],
      ['a key that is taken away', 400, () => `Host: x\r\nConnection: bt-api-key\r\n${key()}`],
      ['bytes above ASCII', 400, () => `Host: x\r\nX-A: \u00e9\r\n${key()}`],
      ['101 headers', 431, () => `Host: x\r\n${many}${key()}`],
    ];
    for (const [what, status, head] of heads) {
      it(`are refused, and nothing behind them is served: ${what}`, async () => {
        const behind = `GET /tenants/self HTTP/1.1\r\nHost: x\r\n${key()}\r\n`;
        const request = `GET /tenants/self HTTP/1.1\r\n${head()}\r\n${behind}`;
        const { answers } = await exchange(server.port, request, 2);
        expect(answers.map((answer) => answer.status)).to.deep.equal([status]);
        expect(answers[0]?.headers.connection).to.equal('close');
      });
    }
    it('are served without chunks and 100 to who speaks HTTP/1.0', async () => {
      const json = JSON.stringify(APPLICATION);
      const lines = `Host: x\r\n${key()}Content-Type: application/json\r\nExpect: 100-continue\r\n`;
      const request = `POST /applications HTTP/1.0\r\n${lines}Content-Length: ${json.length}\r\n\r\n${json}`;
      const { answers } = await exchange(server.port, request, 2);
      expect(answers.map(({ status }) => status)).to.deep.equal([201]);
    });
  });

  /** Paths and methods as no client library would send them. */
  async function raw(line: string, headers = '', key = server.tenant.managementKey) {
    const request = `${line} HTTP/1.1\r\nHost: x\r\nBT-API-KEY: ${key}\r\n${headers}Connection: close\r\n\r\n`;
    const { answers } = await exchange(server.port, request);
    return { status: answers[0]?.status };
  }
});
