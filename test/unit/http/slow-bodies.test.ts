/** Bodies that come slowly: those that are read have a time, those that pass through go on while they move. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { guardListener, LISTENER_OPTIONS } from '../../../shared/http/listener.ts';
import { readBody } from '../../../shared/http/read-body.ts';
import { allowLongBody, type BodyLimits } from '../../../shared/http/slow-bodies.ts';
import { listen } from '../../../shared/process/listen.ts';

/** Short enough for a test; what must not be cut goes on for several of them. */
const LIMITS: BodyLimits = { wholeMs: 300, progressMs: 300, progressBytes: 50, checkEachMs: 20 };
const STEP_MS = 30;
const LONG_STEPS = 40;

describe('a body that comes slowly', () => {
  const toClose: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of toClose.splice(0)) await close();
  });

  async function start(
    onRequest: RequestListener = echo(() => undefined),
    errorBody?: (error: unknown, url: string) => string | undefined,
  ): Promise<number> {
    const server = createServer(LISTENER_OPTIONS);
    guardListener(server, onRequest, { bodies: LIMITS, ...(errorBody && { errorBody }) });
    const port = await listen(server, 0, '127.0.0.1');
    toClose.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return port;
  }

  /** Answers the body, once it is whole. */
  const echo =
    (before: (req: IncomingMessage) => unknown): RequestListener =>
    async (req, res) => {
      await before(req);
      const text = await req.setEncoding('latin1').toArray();
      res.end(text.join(''));
    };

  const passOn = (req: IncomingMessage): void => allowLongBody(req, () => req.socket.bytesRead);

  async function open(
    port: number,
    length: number,
    allowHalfOpen = false,
  ): Promise<{ socket: Socket; all: () => string }> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen });
    socket.setEncoding('latin1');
    toClose.push(() => socket.destroy());
    let text = '';
    socket.on('data', (more) => {
      text += more;
    });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(`POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`);
    return { socket, all: () => text };
  }

  /** Until it is over, or the other side has ended it. */
  async function drip(socket: Socket, steps: number, piece: string): Promise<void> {
    for (let step = 0; step < steps && socket.writable && !socket.readableEnded; step += 1) {
      socket.write(piece);
      await delay(STEP_MS);
    }
  }

  it('has so long when it is read, however it moves', async () => {
    const { socket, all } = await open(await start(), 10_000);
    const closed = once(socket, 'close');
    await drip(socket, LONG_STEPS, 'x'.repeat(50));
    await closed;
    expect(all()).to.match(/^HTTP\/1\.1 408 /);
  });

  it('goes on as long as it moves when it passes through', async () => {
    const { socket, all } = await open(await start(echo(passOn)), LONG_STEPS * 50);
    await drip(socket, LONG_STEPS, 'x'.repeat(50));
    while (!all().includes('x'.repeat(LONG_STEPS * 50))) await delay(STEP_MS);
    expect(all()).to.match(/^HTTP\/1\.1 200 /);
  });

  it('is cut when it passes through and brings too little, or nothing', async () => {
    const port = await start(echo(passOn));
    for (const piece of ['x', '']) {
      const { socket, all } = await open(port, 10_000);
      const closed = once(socket, 'close');
      await drip(socket, LONG_STEPS, piece);
      await closed;
      expect(all(), piece).to.match(/^HTTP\/1\.1 408 /);
    }
  });

  it('is not cut while it is held back on this side', async () => {
    const port = await start(
      echo((req) => {
        passOn(req);
        return delay(LIMITS.progressMs * 4);
      }),
    );
    const { socket, all } = await open(port, 60);
    socket.write('x'.repeat(50));
    await delay(LIMITS.progressMs * 2);
    expect(all()).to.equal('');
    await delay(LIMITS.progressMs * 2);
    socket.write('x'.repeat(10));
    while (!all().includes('x'.repeat(60))) await delay(STEP_MS);
    expect(all()).to.match(/^HTTP\/1\.1 200 /);
  });

  it('has no effect when its rest comes behind the 408, nor has what comes behind that', async () => {
    const served: unknown[] = [];
    const port = await start(async (req, res) => {
      await Promise.resolve(readBody(req, { limitBytes: 100 })).then(
        (body) => served.push(body.toString()),
        () => undefined,
      );
      res.end();
    });
    const { socket, all } = await open(port, 2, true);
    const closed = once(socket, 'close');
    while (!all().includes('408')) await delay(STEP_MS);
    socket.end('{}POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx');
    await closed;
    expect(served).to.deep.equal([]);
    expect(all().match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 408']);
  });

  it('is cut, too, when its request was answered and its connection kept', async () => {
    const port = await start((_req, res) => void res.end('early'));
    const { socket, all } = await open(port, 10_000);
    await once(socket, 'close');
    expect(all()).to.match(/^HTTP\/1\.1 200 .*early$/s);
  });

  it('has its time anew with each request of a connection', async () => {
    const { socket, all } = await open(await start(), 50);
    for (let count = 1; count <= 4; count += 1) {
      await delay(LIMITS.wholeMs / 2);
      socket.write('x'.repeat(50));
      while (all().split('HTTP/1.1 200').length <= count) await delay(STEP_MS);
      socket.write('POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n');
    }
    expect(all()).to.not.include('408');
  });

  it('leaves connections without a request to the limits of node:http', async () => {
    const { socket, all } = await open(await start(), 2);
    socket.write('{}');
    while (!all().includes('{}')) await delay(STEP_MS);
    await delay(LIMITS.wholeMs * 2);
    expect([socket.readableEnded, socket.destroyed]).to.deep.equal([false, false]);
  });

  it('is told so in the words of its path, a request that never came in those of no path', async () => {
    const errorBody = (_error: unknown, url: string) => (url === '/a' ? '{"own":true}' : undefined);
    const port = await start(
      echo(() => undefined),
      errorBody,
    );
    const { socket, all } = await open(port, 10_000);
    await once(socket, 'close');
    expect(all()).to.match(/^HTTP\/1\.1 408 .*application\/json; charset=utf-8.*\{"own":true\}$/s);
    const { socket: next, all: rest } = await open(port, 2);
    next.write('{}');
    while (!rest().includes('{}')) await delay(STEP_MS);
    next.write('nonsense\r\n\r\n');
    await once(next, 'close');
    expect(rest()).to.match(/HTTP\/1\.1 400 .*application\/problem\+json/s);
    expect(rest()).to.not.include('own');
  });
});
