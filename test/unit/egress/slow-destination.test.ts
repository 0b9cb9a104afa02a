/** Destinations that hang, stall or drip (faults F-32): the caller gets an error, no socket stays. */
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { request } from 'undici';
import type { EgressLimits } from '../../../shared/egress/create-egress.ts';
import { createResolveName } from '../../../shared/egress/resolve-name.ts';
import {
  type Destination,
  refusalOf,
  startEgress,
  startHttp,
  startTcp,
  type TestEgress,
} from './destinations.ts';
import { startDnsServer } from './dns-server.ts';

/** Short enough for a test, long enough for a handshake on a busy machine. */
const SHORT_MS = 200;

describe('a destination that is slow or broken', () => {
  const toClose: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of toClose.splice(0)) await close();
  });

  const known = (): TestEgress => startEgress('127.0.0.0/8', [['127.0.0.1']]);

  async function tcp(onSocket: (socket: Socket) => void): Promise<Destination> {
    const destination = await startTcp(onSocket);
    toClose.push(destination.close);
    return destination;
  }

  function get(url: string, limits: EgressLimits): Promise<string> {
    const dispatcher = known().dispatcher(limits);
    toClose.push(() => dispatcher.destroy());
    return request(url, { dispatcher }).then((answer) => answer.body.text());
  }

  async function codeOf(sending: Promise<unknown>): Promise<unknown> {
    const error: unknown = await sending.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return error instanceof Error ? Reflect.get(error, 'code') : undefined;
  }

  it('never begins TLS: the connection is given up and closed', async () => {
    const destination = await tcp(() => undefined);
    const url = `https://dest.example:${destination.port}/`;
    expect(await codeOf(get(url, { connectTimeoutMs: SHORT_MS }))).to.equal('connect_timeout');
    expect(destination.connections()).to.equal(1);
    await destination.allClosed();
  });

  it('sends garbage, a plain answer or an end instead of TLS', async () => {
    const openings = [
      (socket: Socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n'),
      (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
      (socket: Socket) => socket.end(),
      (socket: Socket) => socket.resetAndDestroy(),
    ];
    for (const opening of openings) {
      const destination = await tcp(opening);
      const code = await codeOf(get(`https://dest.example:${destination.port}/`, {}));
      // A reset may come before the handshake begins.
      expect(code).to.be.oneOf(['tls_failed', 'connect_failed']);
      await destination.allClosed();
    }
  });

  it('is not there', async () => {
    const destination = await startTcp(() => undefined);
    await destination.close();
    const refusal = await refusalOf(known().connect('127.0.0.1', destination.port, true));
    expect(refusal).to.include({ code: 'connect_failed', detail: 'ECONNREFUSED' });
  });

  it('has a name that is never resolved', async () => {
    const dns = await startDnsServer(() => 'silent');
    toClose.push(dns.close);
    const resolveName = createResolveName({ servers: [dns.address] });
    const dispatcher = startEgress('', [], { resolveName }).dispatcher({
      connectTimeoutMs: SHORT_MS,
    });
    toClose.push(() => dispatcher.destroy());
    const sending = request('https://dest.example/', { dispatcher });
    expect((await refusalOf(sending)).code).to.equal('name_timeout');
    expect(dns.asked).to.include('A dest.example');
  });

  it('never answers the request', async () => {
    const destination = await startHttp(() => undefined);
    toClose.push(destination.close);
    const sending = get(`http://dest.example:${destination.port}/`, { headersTimeoutMs: SHORT_MS });
    expect(await codeOf(sending)).to.equal('UND_ERR_HEADERS_TIMEOUT');
    await destination.allClosed();
  });

  it('stops in the middle of the body', async () => {
    const destination = await startHttp((_request, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('a');
    });
    toClose.push(destination.close);
    const sending = get(`http://dest.example:${destination.port}/`, { bodyTimeoutMs: SHORT_MS });
    expect(await codeOf(sending)).to.equal('UND_ERR_BODY_TIMEOUT');
    await destination.allClosed();
  });

  it('answers more than the limit, in head or body', async () => {
    const destination = await startHttp((asked, response) => {
      if (asked.url === '/head') response.setHeader('x-long', 'a'.repeat(5_000));
      response.end('a'.repeat(5_000));
    });
    toClose.push(destination.close);
    const url = `http://dest.example:${destination.port}`;
    const limits = { headerBytesMax: 4_096, responseBytesMax: 4_096 };
    expect(await codeOf(get(`${url}/head`, limits))).to.equal('UND_ERR_HEADERS_OVERFLOW');
    expect(await codeOf(get(`${url}/body`, limits))).to.equal('UND_ERR_RES_EXCEEDED_MAX_SIZE');
    expect(await get(`${url}/body`, { responseBytesMax: 5_000 })).to.have.length(5_000);
  });

  it('does not get more connections than allowed; further requests wait', async () => {
    let waiting: (() => void)[] = [];
    const destination = await startHttp((_request, response) => {
      waiting.push(() => response.end('a'));
      if (waiting.length === 2) {
        for (const answer of waiting) answer();
        waiting = [];
      }
    });
    toClose.push(destination.close);
    const dispatcher = known().dispatcher({ connectionsMax: 2 });
    toClose.push(() => dispatcher.destroy());
    const url = `http://dest.example:${destination.port}/`;
    const sending = Array.from({ length: 8 }, async () => {
      const answer = await request(url, { dispatcher });
      return answer.body.text();
    });
    expect(await Promise.all(sending)).to.deep.equal(new Array(8).fill('a'));
    expect(destination.connections()).to.equal(2);
  });
});
