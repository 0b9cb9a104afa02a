/**
 * Attacks on what proxies share and on what changes while a request is under way: connections of other
 * tenants, answers of other requests, rights that end before the body does, addresses in disguise.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawAnswer, request, sendRaw, valuesOf } from './raw-client.ts';

const USE = {
  rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:use'] }],
};
/** Both engines. */
const ENGINES: [name: string, lines: string[]][] = [
  ['undici', []],
  ['http-proxy', ['BT-PROXY-KEEP-ALIVE: timeout=5']],
];
const EVIL = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL';

describe('attacks on proxies', () => {
  let proxies: Proxies;
  before(async () => {
    proxies = await startProxies();
  });
  after(() => proxies?.stop());

  const origins: Origin[] = [];
  afterEach(async () => {
    for (const origin of origins.splice(0)) await origin.close();
  });

  async function destination(...args: Parameters<typeof startOrigin>): Promise<Origin> {
    const origin = await startOrigin(...args);
    origins.push(origin);
    return origin;
  }

  const linesOf = (proxyKey: string, apiKey = proxies.key): string[] => [
    `BT-API-KEY: ${apiKey}`,
    `BT-PROXY-KEY: ${proxyKey}`,
  ];

  async function send(line: string, lines: string[], body = ''): Promise<RawAnswer> {
    const bytes = request(line, [...lines, 'Connection: close'], body);
    return parseAnswer((await sendRaw(proxies.port, bytes)).text);
  }

  for (const [engine, more] of ENGINES) {
    it(`finds no connection of another tenant, by ${engine}`, async () => {
      const origin = await destination(OK);
      const other = await proxies.control.addTenant('Other');
      const { key: otherKey } = await proxies.application(USE, other);
      const own = await proxies.proxy({ destination_url: origin.url });
      const theirs = await proxies.proxy({ destination_url: origin.url }, other);
      const callers = [linesOf(own.key), linesOf(theirs.key, otherKey), linesOf(own.key)];
      const connections: number[] = [];
      for (const lines of callers) {
        expect((await send('GET /proxy', [...lines, ...more])).status).to.equal(200);
        connections.push(origin.connections());
      }
      // The third finds the first one's.
      expect(connections).to.deep.equal([1, 2, 2]);
    });

    for (const delay_ms of [0, 20]) {
      it(`gives nobody an answer that was not asked for, ${delay_ms} ms late, by ${engine}`, async () => {
        let count = 0;
        const origin = await destination((socket) => {
          count += 1;
          const own = `HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n${String(count).padStart(3, '0')}`;
          if (delay_ms === 0) socket.write(own + EVIL);
          else {
            socket.write(own);
            setTimeout(() => socket.write(EVIL), delay_ms);
          }
        });
        const { key } = await proxies.proxy({ destination_url: origin.url });
        for (let round = 1; round <= 4; round += 1) {
          const { status, body } = await send('GET /proxy', [...linesOf(key), ...more]);
          expect([status, body.includes('EVIL')]).to.deep.equal([200, false]);
          expect(body).to.contain(String(count).padStart(3, '0'));
          await new Promise((resolve) => setTimeout(resolve, 2 * delay_ms));
        }
      });
    }
  }

  it('forwards nothing for a right that ended before the body did', async () => {
    const origin = await destination(OK);
    const token = await proxies.token('a value that must stay');
    const body = `{"value":"{{ ${token} }}"}`;
    const ends: [
      status: number,
      end: (ids: { proxy: string; caller: string }) => Promise<unknown>,
    ][] = [
      [401, ({ caller }) => proxies.manage(`DELETE /applications/${caller}`)],
      [404, ({ proxy }) => proxies.manage(`DELETE /proxies/${proxy}`)],
      [
        403,
        ({ caller }) =>
          proxies.manage(`PUT /applications/${caller}`, {
            json: { name: 'Caller', permissions: ['token:create'] },
          }),
      ],
    ];
    for (const [status, end] of ends) {
      const caller = await proxies.application(USE);
      const proxy = await proxies.proxy({ destination_url: origin.url });
      const lines = linesOf(proxy.key, caller.key);
      expect((await send('GET /proxy', lines)).status).to.equal(200);
      origin.received.splice(0);
      const type = ['Content-Type: application/json', `Content-Length: ${body.length}`];
      const bytes = request('POST /proxy', [...lines, ...type, 'Connection: close'], body);
      const socket = connect(proxies.port, '127.0.0.1');
      let text = '';
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk;
      });
      socket.write(bytes.slice(0, -5));
      await end({ proxy: proxy.id, caller: caller.id });
      socket.write(bytes.slice(-5));
      await once(socket, 'close');
      expect([parseAnswer(text).status, origin.received]).to.deep.equal([status, []]);
    }
  });

  it('asks for a key from the moment a proxy wants one, also when the body is on its way', async () => {
    const origin = await destination(OK);
    const draft = { name: 'Open', destination_url: origin.url, require_auth: false };
    const { id, key } = await proxies.proxy(draft);
    const type = ['Content-Type: application/json', 'Content-Length: 2', 'Connection: close'];
    const socket = connect(proxies.port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.write(request('POST /proxy', [`BT-PROXY-KEY: ${key}`, ...type], '{'));
    await proxies.manage(`PUT /proxies/${id}`, { json: { ...draft, require_auth: true } });
    socket.write('}');
    await once(socket, 'close');
    expect([parseAnswer(text).status, origin.received]).to.deep.equal([401, []]);
  });

  it('knows no BT-PROXY-URL where the operator did not allow it', async () => {
    const origin = await destination(OK);
    const lines = [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-URL: ${origin.url}`];
    const { status, body } = await send('GET /proxy', lines);
    expect([status, origin.connections()]).to.deep.equal([400, 0]);
    expect(body).to.not.contain(String(origin.port));
    expect(body).to.contain('BT-PROXY-URL is not served here without SALLYPORT_EPHEMERAL_PROXY');
    expect((await send('GET /proxy', lines.slice(0, 1))).body).to.not.contain('BT-PROXY-URL');
  });

  it('tells of a destination that is not there no more than that', async () => {
    const origin = await startOrigin(OK);
    await origin.close();
    const urls = [origin.url, 'https://no-such-host.invalid'];
    for (const url of urls) {
      const { key } = await proxies.proxy({ destination_url: url });
      for (const [, more] of ENGINES) {
        const answer = await send('GET /proxy/a-path?a-query', [...linesOf(key), ...more]);
        expect(answer.status).to.equal(502);
        expect(valuesOf(answer, 'bt-proxy-destination-status')).to.deep.equal([]);
        for (const word of [
          String(origin.port),
          'no-such',
          'a-path',
          'a-query',
          '127.0',
          'ECONN',
        ]) {
          expect(answer.body).to.not.contain(word);
        }
      }
    }
  });
});

describe('a destination that hides what it sends back', () => {
  const SECRET = '12345678';
  let proxies: Proxies;
  let token: string;
  let origin: Origin | undefined;
  before(async () => {
    proxies = await startProxies();
    token = await proxies.token(SECRET);
  });
  after(() => proxies?.stop());
  afterEach(() => origin?.close());

  async function ask(
    answering: Parameters<typeof startOrigin>[0],
    isEnough?: (text: string) => boolean,
  ): Promise<RawAnswer> {
    origin = await startOrigin(answering);
    const { key } = await proxies.proxy({ destination_url: origin.url, leak_tripwire: 'redact' });
    const body = `{"value":"{{ ${token} }}"}`;
    const lines = [
      ...[`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`, 'Connection: close'],
      ...['Content-Type: application/json', `Content-Length: ${body.length}`],
    ];
    const sent = request('POST /proxy', lines, body);
    return parseAnswer((await sendRaw(proxies.port, sent, isEnough)).text);
  }

  it('in pieces of one byte is masked as in one piece', async () => {
    const { status, body } = await ask(async (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      for (const letter of `a${SECRET}${SECRET}b`) {
        socket.write(`1\r\n${letter}\r\n`);
        await new Promise(setImmediate);
      }
      socket.write('0\r\n\r\n');
    });
    expect(status).to.equal(200);
    expect(body).to.not.match(/\d{2}/);
    expect(body.match(/\*/g)).to.have.length(16);
  });

  it('as the name of a header is masked, too', async () => {
    const answer = await ask(`HTTP/1.1 200 OK\r\nX-${SECRET}: 1\r\nContent-Length: 2\r\n\r\nok`);
    expect(answer.headers).to.include('X-********: 1');
    expect(answer.body).to.equal('ok');
  });

  it('as the length of its answer does not break the framing of ours', async () => {
    const isHead = (text: string): boolean => text.includes('\r\n\r\n');
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${SECRET}\r\n\r\n`;
    const answer = await ask(head + 'a'.repeat(100), isHead);
    expect(valuesOf(answer, 'content-length')).to.deep.equal([SECRET]);
  });
});
