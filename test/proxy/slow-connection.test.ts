/**
 * Destinations to which a connection takes long to make: what is revoked or deleted meanwhile is not sent, and callers
 * who do not wait for it leave nothing behind.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createSecureContext, type TlsOptions } from 'node:tls';
import { expect } from 'chai';
import { CONNECTIONS_MAX } from '../../shared/egress/create-egress.ts';
import { issueCertificate } from '../unit/egress/issue-certificate.ts';
import { OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, request, sendRaw } from './raw-client.ts';

/** Long enough to be asked about three times. */
const HANDSHAKE_MS = 2_000;
const ENGINES: [name: string, lines: string[]][] = [
  ['undici', []],
  ['http-proxy', ['BT-PROXY-CONNECTION: close']],
];
const PATCH = { 'content-type': 'application/merge-patch+json' };

describe('a destination to which a connection takes long', () => {
  const ca = issueCertificate({ subject: 'Test CA', isCa: true });
  const pair = issueCertificate({ subject: 'localhost', issuer: ca, names: ['localhost'] });
  let folder: string;
  let proxies: Proxies;
  let origin: Origin;
  let handshakeMs: number;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-ca-'));
    const file = join(folder, 'ca.pem');
    await writeFile(file, ca.cert);
    proxies = await startProxies({ SALLYPORT_EGRESS_CA_FILE: file, SANDBOX_HOSTS: '0' });
  });
  after(async () => {
    await proxies?.stop();
    await rm(folder, { recursive: true });
  });
  beforeEach(async () => {
    handshakeMs = HANDSHAKE_MS;
    const context = createSecureContext(pair);
    const slow: TlsOptions = {
      ...pair,
      SNICallback: (_name, done) => void setTimeout(() => done(null, context), handshakeMs),
    };
    origin = await startOrigin(OK, slow);
  });
  afterEach(() => origin.close());

  async function prepare(engine: readonly string[], type = 'application/json') {
    const application = await proxies.application({ permissions: ['token:use'] });
    const proxy = await proxies.proxy({ destination_url: origin.url });
    const token = await proxies.token('4242424242424242');
    const body = JSON.stringify({ number: `{{ ${token} }}` });
    const lines = [
      ...[`BT-API-KEY: ${application.key}`, `BT-PROXY-KEY: ${proxy.key}`, 'Connection: close'],
      ...[...engine, `Content-Type: ${type}`, `Content-Length: ${body.length}`],
    ];
    const bytes = request('POST /proxy', lines, body);
    return { application, proxy, token, bytes, send: () => sendRaw(proxies.port, bytes) };
  }
  type Prepared = Awaited<ReturnType<typeof prepare>>;

  const changes: [string, number, (one: Prepared) => Promise<unknown>][] = [
    ['the proxy is deleted', 404, ({ proxy }) => proxies.manage(`DELETE /proxies/${proxy.id}`)],
    [
      'the application is deleted',
      401,
      ({ application }) => proxies.manage(`DELETE /applications/${application.id}`),
    ],
    [
      'the destination is changed',
      503,
      ({ proxy }) =>
        proxies.manage(`PATCH /proxies/${proxy.id}`, {
          ...{ headers: PATCH, json: { destination_url: `${origin.url}/elsewhere` } },
        }),
    ],
    [
      'the token is deleted',
      400,
      async ({ token }) => {
        const { key } = await proxies.application({ permissions: ['token:delete'] });
        await proxies.manage(`DELETE /tokens/${token}`, { key });
      },
    ],
  ];
  for (const [name, engine] of ENGINES) {
    it(`is sent nothing of what was revoked meanwhile, by ${name}`, async () => {
      await Promise.all(
        changes.map(async ([, status, change]) => {
          const one = await prepare(engine);
          const sending = one.send();
          await delay(HANDSHAKE_MS / 4);
          await change(one);
          expect(parseAnswer((await sending).text).status).to.equal(status);
        }),
      );
      const stream = await prepare(engine, 'text/plain');
      const sending = stream.send();
      await delay(HANDSHAKE_MS / 4);
      await proxies.manage(`DELETE /applications/${stream.application.id}`);
      expect(parseAnswer((await sending).text).status).to.equal(401);
      await delay(HANDSHAKE_MS);
      expect(origin.received).to.deep.equal([]);
    });

    it(`is sent what nobody revoked, once, by ${name}`, async () => {
      const { send } = await prepare(engine);
      expect(parseAnswer((await send()).text).status).to.equal(200);
      expect([origin.received.length, origin.connections()]).to.deep.equal([1, 1]);
    });

    it(`is not connected to more often than it has places by callers who do not wait, by ${name}`, async () => {
      const opened: Socket[] = [];
      const silent = createServer(
        (socket) => void opened.push(socket.on('error', () => undefined)),
      );
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
      const { port } = silent.address() as AddressInfo;
      const destination_url = `https://127.0.0.1:${port}`;
      const { key } = await proxies.proxy({ destination_url, require_auth: false });
      const bytes = request('GET /proxy', [`BT-PROXY-KEY: ${key}`, ...engine]);
      for (let count = 0; count < 3 * CONNECTIONS_MAX; count += 1) {
        const caller = connect(proxies.port, '127.0.0.1', () => caller.write(bytes));
        caller.on('error', () => undefined);
        setTimeout(() => caller.resetAndDestroy(), 200 + 5 * count);
      }
      await delay(2_000);
      for (const socket of opened) socket.destroy();
      silent.close();
      expect(opened.length).to.equal(CONNECTIONS_MAX);
    });

    for (const type of ['application/json', 'text/plain']) {
      it(`has all its places when callers of ${type} did not wait, by ${name}`, async () => {
        const { bytes, send } = await prepare(engine, type);
        for (let count = 0; count < CONNECTIONS_MAX + 2; count += 1) {
          const caller = connect(proxies.port, '127.0.0.1', () => caller.write(bytes));
          caller.on('error', () => undefined);
          setTimeout(() => caller.resetAndDestroy(), 300 + count);
        }
        await delay(600);
        handshakeMs = 0;
        const all = Array.from({ length: CONNECTIONS_MAX }, async () => {
          const { text } = await send();
          return parseAnswer(text).status;
        });
        expect(new Set(await Promise.all(all))).to.deep.equal(new Set([200]));
      });
    }
  }
});
