/** Large bodies that come slowly, from many at once: they share a bounded room, ordinary ones need none. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { readIncomingBytes } from '../../../data-plane/proxy/incoming-bytes.ts';
import { ApiError } from '../../../shared/errors.ts';
import { BodyRoom, UNCOUNTED_BYTES } from '../../../shared/http/body-room.ts';
import { readBody } from '../../../shared/http/read-body.ts';
import { checkRequest } from '../../../shared/http/strict-request.ts';
import { listen } from '../../../shared/process/listen.ts';

const LARGE = UNCOUNTED_BYTES + 100_000;

describe('large bodies on their way', () => {
  const toClose: (() => unknown)[] = [];
  let port: number;
  let status: (length: string) => Promise<number>;
  beforeEach(async () => {
    // Two of them, and a half.
    const room = new BodyRoom(250_000);
    const ends = new Map<string, PromiseWithResolvers<number>>();
    const endOf = (length = '') => {
      const end = ends.get(length) ?? Promise.withResolvers<number>();
      ends.set(length, end);
      return end;
    };
    status = (length) => endOf(length).promise;
    const server = createServer(async (req, res) => {
      const reading = Promise.resolve(readBody(req, { limitBytes: 2 * LARGE, room }));
      const result = await reading.then(
        () => 200,
        (error: unknown) => (error instanceof ApiError ? error.status : 500),
      );
      endOf(req.headers['content-length']).resolve(result);
      res.end();
    });
    port = await listen(server, 0, '127.0.0.1');
    toClose.push(
      () => server.closeAllConnections(),
      () => server.close(),
    );
  });
  afterEach(async () => {
    for (const close of toClose.splice(0)) await close();
  });

  /** All of a body but its last byte; told apart by its length. */
  async function begin(length: number): Promise<Socket> {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    toClose.push(() => socket.destroy());
    await once(socket, 'connect');
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`);
    socket.write(Buffer.alloc(length - 1));
    // Until all of it has been read on the other side, nothing can be said of the room.
    await new Promise((resolve) => setTimeout(resolve, 100));
    return socket;
  }

  it('are refused when there are too many, ordinary ones are not', async () => {
    const first = await begin(LARGE);
    await begin(LARGE + 1);
    await begin(LARGE + 2);
    expect(await status(String(LARGE + 2))).to.equal(503);
    const ordinary = await begin(UNCOUNTED_BYTES);
    ordinary.write('x');
    expect(await status(String(UNCOUNTED_BYTES))).to.equal(200);
    first.write('x');
    expect(await status(String(LARGE))).to.equal(200);
  });

  it('give their room back, whether they come to their end or not', async () => {
    const first = await begin(LARGE);
    const second = await begin(LARGE + 1);
    first.write('x');
    second.destroy();
    expect(await status(String(LARGE))).to.equal(200);
    expect(await status(String(LARGE + 1))).to.equal(400);
    const more = await Promise.all([begin(LARGE + 3), begin(LARGE + 4)]);
    for (const socket of more) socket.write('x');
    const ends = [await status(String(LARGE + 3)), await status(String(LARGE + 4))];
    expect(ends).to.deep.equal([200, 200]);
  });

  it('that a proxy has read keep their room until they are answered', async () => {
    const room = new BodyRoom(150_000);
    const answers: (() => void)[] = [];
    const ends: number[] = [];
    const server = createServer(async (req, res) => {
      const { method = '', url = '', httpVersion, rawHeaders } = req;
      const head = checkRequest(method, url, httpVersion, rawHeaders);
      if (!head.ok) throw new Error(head.detail);
      const reading = Promise.resolve(readIncomingBytes(req, res, head, room));
      const status = await reading.then(
        () => 200,
        (error: unknown) => (error instanceof ApiError ? error.status : 500),
      );
      ends.push(status);
      if (status === 200) answers.push(() => res.end());
      else res.end();
    });
    port = await listen(server, 0, '127.0.0.1');
    toClose.push(
      () => server.closeAllConnections(),
      () => server.close(),
    );
    const ended = async (count: number): Promise<void> => {
      while (ends.length < count) await new Promise(setImmediate);
    };
    (await begin(LARGE)).write('x');
    await ended(1);
    (await begin(LARGE)).write('x');
    await ended(2);
    expect(ends).to.deep.equal([200, 503]);
    answers[0]?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
    (await begin(LARGE)).write('x');
    await ended(3);
    expect(ends).to.deep.equal([200, 503, 200]);
  });

  it('that are made here take room while they are sent', async () => {
    const room = new BodyRoom(150_000);
    const sending = Promise.withResolvers<string>();
    const first = room.during(LARGE, () => sending.promise);
    const refused = await room.during(LARGE, async () => 'sent').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(ApiError).and.include({ status: 503 });
    sending.resolve('sent');
    expect(await first).to.equal('sent');
    const failed = room.during(LARGE, () => Promise.reject(new Error('reset')));
    expect(await failed.catch(({ message }: Error) => message)).to.equal('reset');
    expect(await room.during(LARGE, async () => 'sent')).to.equal('sent');
  });

  it('that cannot be refused any more take room all the same', async () => {
    const room = new BodyRoom(150_000);
    room.keep(LARGE);
    const refused = await room.during(LARGE, async () => 'sent').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(ApiError);
    room.leave(LARGE);
    expect(await room.during(LARGE, async () => 'sent')).to.equal('sent');
  });
});
