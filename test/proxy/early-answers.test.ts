/** Destinations that answer before they have the whole request, and keep their connections open. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, request, sendRaw, valuesOf } from './raw-client.ts';

const PIECE = 'b'.repeat(100_000);
const PIECES = 30;

const ENGINES: Record<string, string[]> = {
  'by undici': [],
  'with BT-PROXY-CONNECTION: keep-alive': ['BT-PROXY-CONNECTION: keep-alive'],
  'with BT-PROXY-CONNECTION: close': ['BT-PROXY-CONNECTION: close'],
};

describe('an answer before the end of its request', function () {
  this.timeout(10_000);
  let proxies: Proxies;
  before(async () => {
    proxies = await startProxies();
  });
  after(() => proxies?.stop());

  let server: Server | undefined;
  const sockets = new Set<Socket>();
  afterEach(() => {
    server?.close();
    for (const socket of sockets) socket.destroy();
  });

  /** `answer` is called with the first bytes of each connection; the headers of a request to it. */
  async function behind(answer: (socket: Socket) => void): Promise<string[]> {
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
      socket.once('data', () => answer(socket)).resume();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { key } = await proxies.proxy({ destination_url: `http://localhost:${port}` });
    return [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`];
  }

  async function allClosed(): Promise<void> {
    while (sockets.size > 0) await new Promise(setImmediate);
  }

  /** Of a body that never comes to its end. */
  const upload = (lines: string[]): string =>
    request(
      'POST /proxy',
      [...lines, 'Content-Type: text/plain', 'Content-Length: 50000000'],
      'a'.repeat(200_000),
    );

  for (const [engine, more] of Object.entries(ENGINES)) {
    it(`leaves no connection to the destination behind, ${engine}`, async () => {
      const lines = await behind((socket) =>
        socket.write('HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n'),
      );
      const bytes = upload([...lines, ...more]);
      const all = await Promise.all(Array.from({ length: 8 }, () => sendRaw(proxies.port, bytes)));
      for (const { text } of all) {
        const answer = parseAnswer(text);
        expect(answer.status).to.equal(413);
        expect(valuesOf(answer, 'connection')).to.deep.equal(['close']);
      }
      await allClosed();
    });

    it(`is read to its end, however slowly it is taken, ${engine}`, async () => {
      const lines = await behind((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${PIECE.length * PIECES}\r\n\r\n`);
        for (let count = 0; count < PIECES; count += 1) socket.write(PIECE);
      });
      const caller = connect(proxies.port, '127.0.0.1')
        .on('error', () => undefined)
        .pause();
      caller.write(upload([...lines, ...more]));
      // All of the answer has left the destination, but for what waits in sockets on its way.
      await new Promise((resolve) => setTimeout(resolve, 300));
      let text = '';
      caller.on('data', (chunk) => {
        text += chunk.toString('latin1');
      });
      caller.resume();
      await once(caller, 'close');
      expect(parseAnswer(text).body).to.equal(PIECE.repeat(PIECES));
      await allClosed();
    });
  }
});
