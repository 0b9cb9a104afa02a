/**
 * Destinations that keep one waiting (faults F-32): given up in time, with their connections, whether
 * they say nothing, drip their head or their body, or send hints for ever.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import {
  type Exchange,
  ExchangeEnded,
  sendOverUndici,
} from '../../../data-plane/proxy/exchange.ts';
import { destinationError } from '../../../data-plane/proxy/proxy-error.ts';
import { RequestBody } from '../../../data-plane/proxy/request-body.ts';
import { type Delivery, deliver } from '../../../data-plane/proxy/response.ts';
import { listen } from '../../../shared/process/listen.ts';
import { type Destination, startEgress, startTcp } from '../egress/destinations.ts';

/** Short enough for a test, long enough for a handshake on a busy machine. */
const SHORT_MS = 150;
/** What the system takes of a body without anybody reading it takes its time, too. */
const TAKING_MS = 1_000;

describe('a destination that keeps one waiting', () => {
  const toClose: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of toClose.splice(0)) await close();
  });

  async function send(onSocket: (socket: Socket) => void): Promise<[Exchange, Destination]> {
    const destination = await startTcp(onSocket);
    const dispatcher = startEgress('127.0.0.0/8', [['127.0.0.1']]).dispatcher();
    toClose.push(destination.close, () => dispatcher.destroy());
    const request = {
      ...{ origin: `http://dest.example:${destination.port}`, target: '/', method: 'GET' },
      ...{ headers: [], body: undefined },
    };
    return [sendOverUndici(dispatcher, request, SHORT_MS), destination];
  }

  const drip = (socket: Socket, text: string): void => {
    let at = 0;
    const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ''), 20);
    socket.on('close', () => clearInterval(timer));
  };

  const waiting: Record<string, (socket: Socket) => void> = {
    'says nothing': () => undefined,
    'drips its head': (socket) => drip(socket, `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(10_000)}`),
    'sends hints': (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 X\r\n\r\n'), SHORT_MS / 3);
      socket.on('close', () => clearInterval(timer));
    },
  };
  for (const [name, onSocket] of Object.entries(waiting)) {
    it(`${name}: 408, and its connection is closed`, async () => {
      const [exchange, destination] = await send(onSocket);
      const error: unknown = await exchange.answer.then(() => undefined, destinationError);
      expect(error).to.include({ status: 408 });
      await destination.allClosed();
    });
  }

  it('takes nothing of a body that streams: 408', async () => {
    // More than the system holds for both ends; it comes by itself, so that nothing else ends it.
    const { exchange, leave } = await upload(64 * 1024 * 1024, 64 * 1024 * 1024, TAKING_MS);
    const error: unknown = await exchange.answer.then(() => undefined, destinationError);
    expect(error).to.include({ status: 408 });
    await leave();
  });

  it('is not blamed for a caller whose body does not come', async () => {
    const { exchange, leave } = await upload(1_000, 10, SHORT_MS);
    const over = exchange.answer.catch((error: unknown) => error);
    expect(await Promise.race([over, delay(SHORT_MS * 4)])).to.equal(undefined);
    const gone = new ExchangeEnded('caller_gone');
    exchange.abort(gone);
    expect(await over).to.equal(gone);
    await leave();
  });

  it('has its time from the end of a body that streams', async () => {
    const { exchange, leave } = await upload(10, 10, SHORT_MS);
    const error: unknown = await exchange.answer.then(() => undefined, destinationError);
    expect(error).to.include({ status: 408 });
    await leave();
  });

  /** Sends `sent` of `bytes` to a destination that reads nothing and says nothing. */
  async function upload(bytes: number, sent: number, ms: number) {
    const taken: Socket[] = [];
    const destination = await startTcp((socket) => void taken.push(socket.pause()));
    const dispatcher = startEgress('127.0.0.0/8', [['127.0.0.1']]).dispatcher();
    toClose.push(destination.close, () => dispatcher.destroy());
    const server = createServer();
    const port = await listen(server, 0, '127.0.0.1');
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    toClose.push(
      () => server.close(),
      () => socket.destroy(),
    );
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`);
    socket.write(Buffer.alloc(sent));
    const [req] = (await once(server, 'request')) as [IncomingMessage];
    const request = {
      ...{ origin: `http://dest.example:${destination.port}`, target: '/', method: 'POST' },
      ...{ headers: [], body: new RequestBody(req, bytes) },
    };
    return {
      exchange: sendOverUndici(dispatcher, request, ms),
      leave: async () => {
        // Who reads nothing does not notice that the other side has left.
        for (const one of taken) one.resume();
        await destination.allClosed();
      },
    };
  }

  it('drips its body: the caller is reset, and both connections are closed', async () => {
    const [exchange, destination] = await send((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
      drip(socket, 'a');
    });
    const { body } = await exchange.answer;
    const delivered = await deliverTo(async (res) => deliver(body, res, SHORT_MS));
    expect(delivered).to.deep.equal(['reset', 'reset']);
    await destination.allClosed();
  });

  it('is held back by a caller who reads nothing: both connections are closed', async () => {
    const [exchange, destination] = await send((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.write(Buffer.alloc(64 * 1024 * 1024));
    });
    const { body } = await exchange.answer;
    const [delivery] = await deliverTo(async (res) => deliver(body, res, SHORT_MS), false);
    expect(delivery).to.equal('reset');
    await destination.allClosed();
  });

  /** What became of the delivery, and how the caller's connection ended. */
  async function deliverTo(
    act: (res: ServerResponse) => Promise<Delivery>,
    isRead = true,
  ): Promise<[Delivery, string]> {
    const delivery = Promise.withResolvers<Delivery>();
    const server = createServer((_req, res) => {
      res.writeHead(200);
      act(res).then(delivery.resolve, delivery.reject);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    toClose.push(() => server.close());
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    let ending = 'end';
    socket.on('error', () => {
      ending = 'reset';
    });
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    if (isRead) socket.resume();
    else socket.pause();
    const result = await delivery.promise;
    socket.resume();
    await once(socket, 'close').catch(() => undefined);
    return [result, ending];
  }

  it('has its place as long as a connection is made for it, also when nobody waits any more', async () => {
    const sockets: Socket[] = [];
    const destination = await startTcp((socket) => sockets.push(socket));
    const dispatcher = startEgress('127.0.0.0/8', [['127.0.0.1']]).dispatcher();
    toClose.push(destination.close, () => dispatcher.destroy());
    const told: string[] = [];
    const over = Promise.withResolvers<void>();
    const watcher = {
      onBegin: () => told.push('begins'),
      onOver() {
        told.push('over');
        over.resolve();
      },
    };
    // Its handshake never ends.
    const origin = `https://dest.example:${destination.port}`;
    const body = Buffer.alloc(1_000);
    const request = { origin, target: '/', method: 'POST', headers: [], body };
    const exchange = sendOverUndici(dispatcher, request, undefined, watcher);
    const failed = exchange.answer.catch((error: unknown) => error);
    while (sockets.length === 0) await delay(5);
    exchange.abort(new ExchangeEnded('caller_gone'));
    expect(await failed).to.be.instanceOf(ExchangeEnded);
    await delay(50);
    expect(told).to.deep.equal(['begins']);
    for (const socket of sockets) socket.destroy();
    await over.promise;
    // Who leaves now takes nothing that nobody would give back.
    exchange.abort(new ExchangeEnded('caller_gone'));
    expect(told).to.deep.equal(['begins', 'over']);
  });
});
