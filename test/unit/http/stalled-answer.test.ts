/** Large answers are in memory until they are taken: a caller that takes nothing loses its connection. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { writeAnswer } from '../../../data-plane/answer.ts';

const MIB = 1024 * 1024;
/** Longer than a machine that does other things holds this process up. */
const STALL_MS = 1_500;
const BODY = 'x'.repeat(32 * MIB);

describe('a large answer', () => {
  let server: Server;
  let closed = 0;
  before(async () => {
    const context = { traceId: 'trace', close: false };
    server = createServer((_req, res) => {
      res.once('close', () => {
        if (!res.writableFinished) closed += 1;
      });
      writeAnswer(res, { status: 200, body: BODY }, context, 'text/plain', STALL_MS);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  async function ask(): Promise<Socket> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return socket;
  }

  it('is given up when its caller takes nothing of it', async () => {
    const socket = await ask();
    while (closed === 0) await delay(20);
    socket.destroy();
  });

  it('is given whole to a caller that is slow, for longer than that', async () => {
    const before = closed;
    const socket = await ask();
    const beganAt = performance.now();
    let received = 0;
    for await (const chunk of socket) {
      received += (chunk as Buffer).length;
      const left = received < BODY.length;
      // So slow that it lasts for several times what a stall may.
      if (left && performance.now() - beganAt < 4 * STALL_MS) await delay(5);
      if (!left) break;
    }
    expect(received).to.be.at.least(BODY.length);
    expect(closed).to.equal(before);
  });
});
