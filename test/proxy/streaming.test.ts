/** Large bodies, both ways at their pace: the data plane holds none of them. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { call, type JsonObject } from '../support/http-call.ts';
import { startSallyport, type TestSallyport } from '../support/sallyport.ts';
import { skipUnlessLinux } from '../support/skip.ts';

const MIB = 1024 * 1024;
const BODY_BYTES = 256 * MIB;
const WARM_UP_BYTES = 16 * MIB;
/** Each side dawdles over its first bytes. */
const SLOW_BYTES = 8 * MIB;
const CHUNK = Buffer.alloc(MIB, 'sallyport');
const GROWTH_MAX = 64 * MIB;

/** Takes a body slowly at first, then sends as much back. */
function startMirror(): Server {
  return createServer((req, res) => {
    let received = 0;
    req.on('data', (chunk: Buffer) => {
      received += chunk.length;
      // A destination that is busy: what comes meanwhile must wait at the caller.
      if (received < SLOW_BYTES) {
        req.pause();
        setTimeout(() => req.resume(), 5);
      }
    });
    req.on('end', async () => {
      res.writeHead(200, { 'content-length': received });
      for (let sent = 0; sent < received; sent += CHUNK.length) {
        if (!res.write(CHUNK)) await once(res, 'drain');
      }
      res.end();
    });
  });
}

describe('large bodies through a proxy', () => {
  let sallyport: TestSallyport;
  let mirror: Server;
  const lines: Record<string, string> = {};
  before(async () => {
    sallyport = await startSallyport({
      SANDBOX_HOSTS: '0',
      SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8,::1/128',
      LOG_LEVEL: 'info',
    });
    mirror = startMirror().listen(0, '127.0.0.1');
    await once(mirror, 'listening');
    const { port } = mirror.address() as AddressInfo;
    const manage = async (line: string, json: JsonObject): Promise<string> => {
      const { managementKey: key } = sallyport.tenant;
      return String((await call(sallyport.baseUrl, line, { key, json })).body.key);
    };
    const permissions = ['token:use'];
    const json = { name: 'Caller', type: 'private', permissions };
    lines['bt-api-key'] = await manage('POST /applications', json);
    lines['bt-proxy-key'] = await manage('POST /proxies', {
      ...{ name: 'Mirror', destination_url: `http://localhost:${port}` },
    });
  });
  after(async () => {
    mirror?.close();
    await sallyport?.stop();
  });

  function residentBytes(): number {
    const pid = sallyport.planes.dataPlane.pid();
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024;
  }

  /** Sends and gets back so many bytes; the caller is slow at first. */
  async function transfer(bytes: number, framing: string): Promise<void> {
    const sending = httpRequest(`${sallyport.baseUrl}/proxy`, {
      method: 'POST',
      headers: {
        ...lines,
        'content-type': 'application/octet-stream',
        [framing]: framing === 'content-length' ? String(bytes) : 'chunked',
      },
    });
    const answering = once(sending, 'response');
    for (let sent = 0; sent < bytes; sent += CHUNK.length) {
      if (!sending.write(CHUNK)) await once(sending, 'drain');
    }
    sending.end();
    const [answer] = await answering;
    expect(answer.statusCode).to.equal(200);
    let received = 0;
    for await (const chunk of answer) {
      received += chunk.length;
      // What comes meanwhile must wait at the destination.
      if (received < SLOW_BYTES) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(received).to.equal(bytes);
  }

  for (const framing of ['content-length', 'transfer-encoding']) {
    it(`streams 256 MiB up and down with ${framing}, and grows by at most 64 MiB`, async function () {
      skipUnlessLinux(this, 'memory of a process is read from /proc');
      this.timeout(120_000);
      // What a process takes for its first request is not what a body costs.
      await transfer(WARM_UP_BYTES, framing);
      const before = residentBytes();
      let largest = before;
      const sampler = setInterval(() => {
        largest = Math.max(largest, residentBytes());
      }, 50);
      await transfer(BODY_BYTES, framing).finally(() => clearInterval(sampler));
      expect(largest - before).to.be.lessThan(GROWTH_MAX);
    });
  }
});
