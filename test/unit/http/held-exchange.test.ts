/** What a request holds, such as room for a large page: until its route has ended and its answer has left. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type Exchange, HttpExchange } from '../../../data-plane/exchange.ts';

describe('what a request holds', () => {
  let server: Server;
  let caller: Socket;
  let res: ServerResponse;
  let exchange: Exchange;
  let released: number;

  beforeEach(async () => {
    released = 0;
    server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const arrived = once(server, 'request');
    caller = connect((server.address() as AddressInfo).port, '127.0.0.1');
    caller.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const [req, response]: [IncomingMessage, ServerResponse] = (await arrived) as never;
    res = response;
    exchange = new HttpExchange(req, res, {} as never, {});
    exchange.hold(() => {
      released += 1;
    });
  });
  afterEach(() => {
    caller.destroy();
    server.closeAllConnections();
    server.close();
  });

  it('is held while its route works for a caller who has gone', async () => {
    const closed = once(res, 'close');
    caller.destroy();
    await closed;
    expect([exchange.isHolding, released]).to.deep.equal([true, 0]);
    exchange.over();
    expect([exchange.isHolding, released]).to.deep.equal([false, 1]);
  });

  it('is held until the answer has left, and given back once', async () => {
    const closed = once(res, 'close');
    res.end('answer');
    exchange.over();
    expect(released).to.equal(0);
    await closed;
    expect(released).to.equal(1);
    exchange.over();
    expect(released).to.equal(1);
  });

  it('may be nothing', () => {
    exchange.over();
    const other = new HttpExchange(res.req, res, {} as never, {});
    other.over();
    expect(res.listenerCount('close')).to.be.at.most(1);
  });
});
