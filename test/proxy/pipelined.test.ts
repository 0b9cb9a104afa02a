/** Answers that wait for earlier ones of their connection: they end like others, and hold up no drain. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { type Answering, OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { request, sendRaw } from './raw-client.ts';

const BROKEN = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf';
const RESERVED = 'BT-PROXY-CONNECTION: keep-alive';

describe('answers to pipelined requests', () => {
  let proxies: Proxies;
  const origins: Origin[] = [];
  before(async () => {
    proxies = await startProxies();
  });
  after(async () => {
    for (const origin of origins) await origin.close();
    await proxies?.stop();
  });

  async function linesFor(answering: Answering): Promise<string[]> {
    const origin = await startOrigin(answering);
    origins.push(origin);
    const { key } = await proxies.proxy({ destination_url: origin.url });
    return [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`];
  }
  const slowly: Answering = (socket) => setTimeout(() => socket.write(OK), 400);
  const breaking: Answering = (socket) => {
    socket.write(BROKEN);
    setTimeout(() => socket.resetAndDestroy(), 50);
  };

  for (const more of [[], [RESERVED]]) {
    const engine = more.length === 0 ? 'undici' : 'the engine of the two reserved headers';
    it(`end the connection when one breaks off behind a slow one, which is whole: ${engine}`, async () => {
      const slow = await linesFor(slowly);
      const broken = await linesFor(breaking);
      const requests = [
        request('GET /proxy/1', slow),
        request('GET /proxy/2', [...broken, ...more]),
        request('GET /proxy/3', slow),
      ];
      const { text } = await sendRaw(proxies.port, requests.join(''));
      expect(text).to.match(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nok/);
      // Nothing of what can never be whole, nor of what came after it.
      expect(text.split('HTTP/1.1 ')).to.have.lengthOf(2);
      expect(text).not.to.contain('half');
    });
  }

  it('hold up no drain when one breaks off behind a slow one', async () => {
    const own = await startProxies();
    const slow = await startOrigin(slowly);
    const broken = await startOrigin(breaking);
    origins.push(slow, broken);
    const linesOf = async ({ url }: Origin): Promise<string[]> => {
      const { key } = await own.proxy({ destination_url: url });
      return [`BT-API-KEY: ${own.key}`, `BT-PROXY-KEY: ${key}`];
    };
    const requests =
      request('GET /proxy/1', await linesOf(slow)) + request('GET /proxy/2', await linesOf(broken));
    const socket = connect(own.port, '127.0.0.1', () => socket.write(requests));
    socket.on('error', () => undefined);
    await once(socket, 'data');
    await own.stop();
    socket.destroy();
  });
});
