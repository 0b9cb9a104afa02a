/**
 * Destinations that answer garbage, too much, too little or nothing (attacks C-14, faults F-32): the
 * caller gets a 502 or a reset, never a clean end of half an answer, and the next request is clean.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect } from 'chai';
import { type Answering, OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawResult, request, sendRaw, valuesOf } from './raw-client.ts';

describe('a broken destination', () => {
  let proxies: Proxies;
  const origins: Origin[] = [];
  before(async () => {
    proxies = await startProxies();
  });
  after(() => proxies?.stop());
  afterEach(async () => {
    for (const origin of origins.splice(0)) await origin.close();
  });

  async function behind(
    answering: Answering | string,
  ): Promise<{ origin: Origin; lines: string[] }> {
    const origin = await startOrigin(answering);
    origins.push(origin);
    const { key } = await proxies.proxy({ destination_url: origin.url });
    return { origin, lines: [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`] };
  }

  const get = (lines: string[], more: string[] = []): Promise<RawResult> =>
    sendRaw(proxies.port, request('GET /proxy', [...lines, ...more, 'Connection: close']));

  const HEAD = 'HTTP/1.1 200 OK\r\n';
  const GARBAGE: Record<string, string> = {
    'no HTTP at all': 'garbage garbage\r\n\r\n',
    'another protocol': 'SSH-2.0-OpenSSH_9.6\r\n',
    'two different lengths': `${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    'two equal lengths': `${HEAD}Content-Length: 2\r\nContent-Length: 2\r\n\r\nab`,
    'a list of lengths': `${HEAD}Content-Length: 2, 2\r\n\r\nab`,
    'a length and chunks': `${HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'a hexadecimal length': `${HEAD}Content-Length: 0x2\r\n\r\nab`,
    'a length with a sign': `${HEAD}Content-Length: +2\r\n\r\nab`,
    'a folded header': `${HEAD}X-A: 1\r\n folded\r\nContent-Length: 2\r\n\r\nab`,
    'a space before a colon': `${HEAD}Content-Length : 2\r\n\r\nab`,
    'a bare line feed': 'HTTP/1.1 200 OK\nContent-Length: 2\n\nab',
    'a NUL in a header': `${HEAD}X-A: a\0b\r\nContent-Length: 2\r\n\r\nab`,
    'status 99': 'HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nab',
    'status 1000': 'HTTP/1.1 1000 X\r\nContent-Length: 2\r\n\r\nab',
    'an unasked 101': 'HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nPRI',
    'an unasked 100': `HTTP/1.1 100 Continue\r\n\r\n${OK}`,
    'a head that is too large': `${HEAD}X-A: ${'a'.repeat(17_000)}\r\n\r\n`,
    '1,000 times 103': `${'HTTP/1.1 103 X\r\nLink: </a>\r\n\r\n'.repeat(1_000)}${OK}`,
  };
  for (const [name, bytes] of Object.entries(GARBAGE)) {
    it(`answers ${name}: 502, and nothing of it`, async () => {
      const { origin, lines } = await behind(bytes);
      const { text, ending } = await get(lines, ['BT-TRACE-ID: trace-9']);
      const answer = parseAnswer(text);
      expect(answer.status).to.equal(502);
      expect(valuesOf(answer, 'content-type')).to.deep.equal(['application/json; charset=utf-8']);
      expect(valuesOf(answer, 'bt-proxy-destination-status')).to.deep.equal([]);
      expect(valuesOf(answer, 'bt-trace-id')).to.deep.equal(['trace-9']);
      const { proxy_error } = JSON.parse(answer.body);
      expect(proxy_error).to.have.all.keys('title', 'status', 'detail', 'errors');
      expect(proxy_error).to.include({ title: 'Bad Gateway', status: 502 });
      expect(ending).to.equal('end');
      await origin.allClosed();
      expect(origin.received).to.have.length(1);
    });
  }

  it('closes at once, or resets: 502, and a POST is sent once', async () => {
    const acts: Answering[] = [(socket) => socket.end(), (socket) => socket.resetAndDestroy()];
    for (const act of acts) {
      const { origin, lines } = await behind(act);
      const bytes = request('POST /proxy', [...lines, 'Content-Length: 2'], 'ab');
      const { text } = await sendRaw(proxies.port, bytes, (got) => got.endsWith('}}'));
      expect(parseAnswer(text).status).to.equal(502);
      expect(origin.received).to.have.length(1);
    }
  });

  it('is not there: 502', async () => {
    const { origin, lines } = await behind(OK);
    await origin.close();
    origins.length = 0;
    expect(parseAnswer((await get(lines)).text).status).to.equal(502);
  });

  it('has a name that does not resolve: 502, by either engine (C-13 row 190)', async () => {
    // RFC 7686: of such names no resolver may ask a DNS server.
    const { key } = await proxies.proxy({ destination_url: 'https://no-such-name.onion' });
    const lines = [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`];
    for (const more of [[], ['BT-PROXY-CONNECTION: close']]) {
      const answer = parseAnswer((await get(lines, more)).text);
      expect(answer.status).to.equal(502);
      const { proxy_error } = JSON.parse(answer.body);
      expect(proxy_error.detail).to.equal('The host name could not be resolved');
      expect(answer.body).to.not.contain('onion');
    }
  });

  const BROKEN_OFF: Record<string, Answering> = {
    'ends before its length': (socket) => socket.end(`${HEAD}Content-Length: 9\r\n\r\nhalf`),
    'ends between chunks': (socket) =>
      socket.end(`${HEAD}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n`),
    'sends a broken chunk': (socket) =>
      socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n`),
    'is reset within its length': (socket) =>
      socket.write(`${HEAD}Content-Length: 9\r\n\r\nhalf`, () =>
        setTimeout(() => socket.resetAndDestroy(), 50),
      ),
  };
  for (const [name, answering] of Object.entries(BROKEN_OFF)) {
    for (const version of ['1.1', '1.0']) {
      it(`${name}: an HTTP/${version} caller is reset`, async () => {
        const { origin, lines } = await behind(answering);
        const bytes = request('GET /proxy', lines).replace('HTTP/1.1', `HTTP/${version}`);
        const { text, ending } = await sendRaw(proxies.port, bytes);
        expect(ending).to.equal('reset');
        expect(text).to.not.match(/0\r\n\r\n$/);
        await origin.allClosed();
      });
    }
  }

  it('sends a second answer behind the first: its socket is not used again', async () => {
    const { origin, lines } = await behind(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`);
    const bytes =
      request('GET /proxy', lines) + request('GET /proxy', [...lines, 'Connection: close']);
    const { text } = await sendRaw(proxies.port, bytes);
    expect(text).to.not.contain('evil');
    expect(origin.connections()).to.equal(2);
  });

  it('answers before it has the body: the answer arrives, and the connection ends', async () => {
    const { lines } = await behind(OK);
    const bytes = [...lines, 'Content-Length: 100000', 'Content-Type: text/plain'];
    const eager = await startEager();
    const { key } = await proxies.proxy({ destination_url: eager.url });
    bytes[1] = `BT-PROXY-KEY: ${key}`;
    const { text } = await sendRaw(proxies.port, request('POST /proxy', bytes, 'a'.repeat(50_000)));
    expect(parseAnswer(text).status).to.equal(413);
    expect(valuesOf(parseAnswer(text), 'connection')).to.deep.equal(['close']);
    await eager.close();
  });

  it('is lost while it gets a body: 502, and the connection ends', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.resetAndDestroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { key } = await proxies.proxy({ destination_url: `http://localhost:${port}` });
    const lines = [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`];
    const framing = ['Transfer-Encoding: chunked', 'Content-Type: text/plain'];
    const body = `10000\r\n${'a'.repeat(0x10000)}\r\n`;
    const { text } = await sendRaw(
      proxies.port,
      request('POST /proxy', [...lines, ...framing], body),
    );
    expect(parseAnswer(text).status).to.equal(502);
    expect(valuesOf(parseAnswer(text), 'connection')).to.deep.equal(['close']);
    server.close();
  });

  it('serves the next request on the connection of the caller', async () => {
    const { lines } = await behind((socket, { line }) =>
      socket.write(line.includes('bad') ? 'garbage\r\n\r\n' : OK),
    );
    const bytes =
      request('GET /proxy/bad', lines) + request('GET /proxy', [...lines, 'Connection: close']);
    const { text } = await sendRaw(proxies.port, bytes);
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 502', 'HTTP/1.1 200']);
  });

  it('is left when its caller goes away, before and within its answer', async () => {
    const answerings: Answering[] = [
      () => undefined,
      (socket) => socket.write(`${HEAD}Content-Length: 9\r\n\r\nhalf`),
    ];
    for (const answering of answerings) {
      const { origin, lines } = await behind(answering);
      const socket = connect(proxies.port, '127.0.0.1');
      socket.write(request('GET /proxy', lines));
      while (origin.received.length === 0) await new Promise(setImmediate);
      socket.destroy();
      await origin.allClosed();
    }
    const left = (): Promise<number> =>
      proxies.metric('sallyport_proxy_requests_total', { outcome: 'caller_gone' });
    while ((await left()) < 2) await new Promise(setImmediate);
  });

  /** Answers as soon as the head is there. */
  async function startEager(): Promise<Pick<Origin, 'url' | 'close'>> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write('HTTP/1.1 413 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      url: `http://localhost:${port}`,
      close: async () => {
        server.close();
      },
    };
  }
});
