/** Destinations and scripts that want more of the gateway than their share (attacks C-12 row 176). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { brotliCompressSync, constants, createGzip, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { type Destination, startHttp, startTcp } from '../egress/destinations.ts';
import { type Asking, type AskingSettings, startAsking } from './fetch-asking.ts';

const MIB = 1024 * 1024;
const FAST = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

describe('the bounds of fetches', () => {
  let destination: Destination;
  let reply: (request: IncomingMessage, response: ServerResponse) => void;
  let base: string;
  const opened: { close(): Promise<void> }[] = [];

  before(async () => {
    destination = await startHttp((request, response) => reply(request, response));
    base = `http://127.0.0.1:${destination.port}`;
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });
  after(() => destination.close());

  function start(settings?: AskingSettings): Asking {
    const asking = startAsking(settings);
    opened.push(asking.fetches);
    return asking;
  }

  it('end a response above 10 MiB, announced or not', async () => {
    const asking = start();
    reply = (_request, response) => {
      response.setHeader('Content-Length', 1024 * MIB).write('begin');
    };
    expect((await asking.failure(base)).code).to.equal('ERR_RESPONSE_TOO_LARGE');
    let written = 0;
    const chunk = Buffer.alloc(64 * 1024);
    reply = (_request, response) => {
      const more = (): void => {
        while (written < 1024 * MIB && response.write(chunk)) written += chunk.length;
      };
      response.on('drain', more);
      more();
    };
    expect((await asking.failure(base)).code).to.equal('ERR_RESPONSE_TOO_LARGE');
    expect(written).to.be.lessThan(64 * MIB);
  });

  it('let a response of 10 MiB pass', async () => {
    reply = (_request, response) => response.end(Buffer.alloc(10 * MIB, 'x'));
    expect(await start().textOf(base)).to.have.length(10 * MIB);
  });

  const BOMBS: [string, Buffer][] = [
    ['gzip', gzipSync(Buffer.alloc(300 * MIB))],
    ['br', brotliCompressSync(Buffer.alloc(100 * MIB), FAST)],
  ];
  for (const [coding, bomb] of BOMBS) {
    it(`end a ${coding} bomb at 10 MiB of output`, async () => {
      expect(bomb.length).to.be.lessThan(MIB);
      reply = (_request, response) => response.setHeader('Content-Encoding', coding).end(bomb);
      const asking = start();
      const before = process.memoryUsage().rss;
      expect((await asking.failure(base)).code).to.equal('ERR_RESPONSE_TOO_LARGE');
      expect(process.memoryUsage().rss - before).to.be.lessThan(100 * MIB);
    });
  }

  it('end an endless gzip stream', async () => {
    reply = (_request, response) => {
      const endless = createGzip();
      endless.pipe(response.setHeader('Content-Encoding', 'gzip'));
      const chunk = Buffer.from(Array.from({ length: 64 * 1024 }, (_, at) => (at * at * 31) & 255));
      const more = (): void => {
        while (!response.destroyed && endless.write(chunk));
      };
      endless.on('drain', more);
      more();
      response.on('close', () => endless.destroy());
    };
    expect((await start().failure(base)).code).to.equal('ERR_RESPONSE_TOO_LARGE');
  });

  it('cut a destination that does not begin to answer', async () => {
    reply = () => undefined;
    const error = await start({ limits: { headersMs: 100 } }).failure(base);
    expect(error).to.include({ code: 'ETIMEDOUT' });
    expect(error.message).to.equal('The destination did not begin to answer in time');
  });

  it('cut a destination that drips, whether its head or its body', async () => {
    const dripping = await startTcp((socket) => {
      const head = 'HTTP/1.1 200 OK\r\nX-Long: ';
      const timer = setInterval(() => socket.write('a'), 20);
      socket.once('data', () => socket.write(head)).on('close', () => clearInterval(timer));
    });
    opened.push(dripping);
    const asking = start({ limits: { headersMs: 200, totalMs: 400 } });
    const slowHead = await asking.failure(`http://127.0.0.1:${dripping.port}/`);
    expect(slowHead.message).to.equal('The destination did not begin to answer in time');
    await dripping.allClosed();
    reply = (_request, response) => {
      const timer = setInterval(() => response.write('a'), 20);
      response.on('close', () => clearInterval(timer));
    };
    const slowBody = await asking.failure(base);
    expect(slowBody).to.include({ code: 'ETIMEDOUT' });
    expect(slowBody.message).to.equal('The destination did not answer in time');
  });

  it('count redirects into the time of the whole', async () => {
    reply = (_request, response) => {
      setTimeout(() => response.writeHead(302, { Location: '/again' }).end(), 150);
    };
    const error = await start({ limits: { headersMs: 300, totalMs: 400 } }).failure(base);
    expect(error.code).to.equal('ETIMEDOUT');
  });

  it('make the fetches of a tenant take turns, and hold nobody else up', async () => {
    const waiting: ServerResponse[] = [];
    const arrived = Promise.withResolvers<void>();
    reply = (request, response) => {
      if (request.url === '/quick') return void response.end('quick');
      waiting.push(response);
      if (waiting.length === 2) arrived.resolve();
    };
    const asking = start({ limits: { tenantRequestsMax: 2, tenantWaitingMax: 3 } });
    const asked = Array.from({ length: 5 }, () => asking.ask(base));
    await arrived.promise;
    expect((await asking.failure(base)).code).to.equal('EAGAIN');
    expect((await asking.ask(`${base}/quick`, {}, undefined, 'other')).text).to.equal('quick');
    expect(waiting).to.have.length(2);
    reply = (_request, response) => response.end('later');
    for (const response of waiting) response.end('later');
    expect((await Promise.all(asked)).map(({ text }) => text)).to.deep.equal(
      Array(5).fill('later'),
    );
    expect((await asking.ask(base)).text).to.equal('later');
  });

  it('give a turn back that nobody waits for any more', async () => {
    let first: ServerResponse | undefined;
    const arrived = Promise.withResolvers<void>();
    reply = (_request, response) => {
      first = response;
      arrived.resolve();
    };
    const asking = start({ limits: { tenantRequestsMax: 1, totalMs: 20_000 } });
    const running = asking.ask(base);
    await arrived.promise;
    const controller = new AbortController();
    const given = asking.failure(base, {}, controller.signal);
    const next = asking.ask(base);
    controller.abort();
    await given;
    reply = (_request, response) => response.end('next');
    first?.end('first');
    expect((await running).text).to.equal('first');
    expect((await next).text).to.equal('next');
  });

  it('bound what the responses of a tenant hold together, and give it back', async () => {
    const chunk = Buffer.alloc(6 * MIB, 'x');
    const open = new Set<ServerResponse>();
    reply = (request, response) => {
      if (request.url === '/whole') return void response.end(chunk);
      open.add(response);
      response.on('close', () => open.delete(response));
      response.write(chunk);
    };
    const asking = start({ limits: { tenantBytesMax: 10 * MIB } });
    const held = [asking.failure(base), asking.failure(base)];
    const lost = await Promise.race(held);
    expect(lost.code).to.equal('EAGAIN');
    const other = await asking.textOf(`${base}/whole`, {}, undefined, 'other');
    expect(other).to.have.length(6 * MIB);
    for (const response of open) response.destroy();
    await Promise.all(held);
    for (let count = 0; count < 4; count += 1) {
      expect(await asking.textOf(`${base}/whole`)).to.have.length(6 * MIB);
    }
  });

  it('bound what the requests of a tenant hold together, waiting ones included', async () => {
    const arrived = Promise.withResolvers<ServerResponse>();
    reply = (_request, response) => arrived.resolve(response);
    const asking = start({ limits: { tenantBytesMax: 10 * MIB, tenantRequestsMax: 1 } });
    const upload = { method: 'POST', text: 'x'.repeat(4 * MIB) };
    const asked = [asking.ask(base, upload), asking.ask(base, upload)];
    const response = await arrived.promise;
    expect((await asking.failure(base, upload)).code).to.equal('EAGAIN');
    reply = (_request, next) => next.end('ok');
    response.end('ok');
    await Promise.all(asked);
    expect((await asking.ask(base, upload)).text).to.equal('ok');
  });

  it('hold after thousands of names that lead nowhere', async () => {
    const asking = start({ answers: [['10.0.0.1']] });
    for (let round = 0; round < 12; round += 1) {
      const names = Array.from({ length: 100 }, (_, at) => `https://a${round}-${at}.example.com/`);
      const errors = await Promise.all(names.map((url) => asking.failure(url)));
      const codes = new Set(errors.map(({ code }) => code));
      expect([...codes]).to.deep.equal(['ERR_DESTINATION_REFUSED']);
    }
    expect(asking.egress.resolved).to.have.length(1_200);
  });

  it('leave no connection behind a response that was not read to its end', async () => {
    const closed: Promise<unknown>[] = [];
    reply = (request, response) => {
      closed.push(new Promise((resolve) => request.socket.on('close', resolve)));
      if (request.url === '/moved') response.writeHead(302, { Location: '/' });
      response.write('begin');
      if (request.url !== '/moved') response.end(Buffer.alloc(11 * MIB));
    };
    // Silence would end the connection, too.
    const asking = start({ limits: { silenceMs: 120_000 } });
    expect((await asking.failure(`${base}/moved`)).code).to.equal('ERR_RESPONSE_TOO_LARGE');
    expect(closed).to.have.length(2);
    await Promise.all(closed);
  });
});
