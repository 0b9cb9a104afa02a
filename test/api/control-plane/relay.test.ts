/**
 * What the public listener hands to the control plane goes over kept-alive connections that all callers
 * share. A body must never be read there as a request: the next caller's headers would become its tail.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { HEADERS_MAX } from '../../../shared/http/strict-request.ts';
import { type Proxies, startProxies } from '../../proxy/proxies.ts';
import { parseAnswer, request, sendRaw } from '../../proxy/raw-client.ts';
import type { TestTenant } from '../../support/control-plane.ts';
import { call } from '../../support/http-call.ts';

const METHODS = ['GET', 'HEAD', 'DELETE', 'POST', 'PUT', 'PATCH'];
/** Served by the control plane alone. */
const PATH = '/applications/3fa85f64-5717-4562-b3fc-2c963f66afa6';

describe('bodies that are relayed to the control plane', () => {
  let proxies: Proxies;
  let victim: TestTenant;
  before(async () => {
    proxies = await startProxies();
    victim = await proxies.control.addTenant('Victim');
  });
  after(() => proxies?.stop());

  const framings = (body: string): [lines: string[], bytes: string][] => [
    [['Transfer-Encoding: chunked'], `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
    [[`Content-Length: ${body.length}`], body],
  ];

  it('are never the beginning of the next request, by any method and framing', async () => {
    const bodies = [
      // Whole: its answer would be given to whoever asks next. Cut off: it swallows who asks next.
      request('GET /permissions', [`BT-API-KEY: ${proxies.control.tenant.managementKey}`]),
      request('GET /permissions', ['X-Rest: ']).slice(0, -4),
    ];
    for (const body of bodies) {
      for (const [lines, bytes] of framings(body)) {
        for (const method of METHODS) {
          const key = `BT-API-KEY: ${proxies.control.tenant.managementKey}`;
          const type = 'Content-Type: application/json';
          // Kept alive, as an attacker would: an end of the connection would be passed on.
          const sent = request(`${method} ${PATH}`, [key, type, ...lines], bytes);
          const { text } = await sendRaw(proxies.port, sent, (all) => all.includes('\r\n\r\n'));
          const answer = parseAnswer(text);
          expect(answer.status, `${method} ${lines}`).to.be.within(400, 499);
          for (let times = 0; times < 3; times += 1) {
            const own = await call(proxies.url, 'GET /tenants/self', { key: victim.managementKey });
            expect([own.status, own.body.id], `${method} ${lines}`).to.deep.equal([200, victim.id]);
          }
        }
      }
    }
  });

  it('are asked for when the caller waits for that', async () => {
    const json = '{"name":"Waits","type":"private","permissions":["token:read"]}';
    const lines = [
      `BT-API-KEY: ${proxies.control.tenant.managementKey}`,
      ...['Content-Type: application/json', `Content-Length: ${json.length}`],
    ];
    const head = request('POST /applications', [...lines, 'Expect: 100-continue']);
    const socket = connect(proxies.port, '127.0.0.1', () => socket.write(head));
    const [first] = await once(socket, 'data');
    expect(String(first)).to.equal('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write(json);
    const [second] = await once(socket, 'data');
    expect(String(second)).to.match(/^HTTP\/1\.1 201 /);
    socket.destroy();
  });

  it('arrive with as many headers as the public port takes', async () => {
    const key = `BT-API-KEY: ${proxies.control.tenant.managementKey}`;
    for (const [extra, status] of [
      [HEADERS_MAX - 3, 200],
      [HEADERS_MAX - 2, 431],
    ] as const) {
      const lines = Array.from({ length: extra }, (_, n) => `X-${n}: 1`);
      const sent = request('GET /tenants/self', [key, 'Connection: close', ...lines]);
      const { text } = await sendRaw(proxies.port, sent);
      expect(parseAnswer(text).status, String(extra)).to.equal(status);
    }
  });

  describe('that never come to their end', () => {
    const head = (key: string): string[] => [
      ...[`BT-API-KEY: ${key}`, 'Content-Type: application/json'],
      'Content-Length: 900000',
    ];
    /** More than the relay has connections. */
    async function manyTimes(send: () => Promise<unknown>): Promise<void> {
      for (let round = 0; round < 10; round += 1) {
        await Promise.all(Array.from({ length: 10 }, send));
      }
      const key = proxies.control.tenant.managementKey;
      const own = await call(proxies.url, 'GET /tenants/self', { key });
      expect(own.status).to.equal(200);
    }

    it('leave nothing behind when they are answered, and the callers go', async () => {
      const begun = request('POST /applications', head('key_none'), '{"name":"');
      await manyTimes(async () => {
        const { text } = await sendRaw(proxies.port, begun, (all) => all.includes('\r\n\r\n'));
        expect(parseAnswer(text).status).to.equal(401);
      });
    });

    it('leave nothing behind when the callers go without an answer', async () => {
      const { managementKey } = proxies.control.tenant;
      const begun = request('POST /applications', head(managementKey), '{"name":"');
      await manyTimes(async () => {
        const socket = connect(proxies.port, '127.0.0.1', () => socket.write(begun));
        await setTimeout(50);
        socket.destroy();
      });
    });

    it('can be sent to their end after their answer, and the next request be served', async () => {
      const rest = `${'x'.repeat(899_989)}"}`;
      const next = request('GET /tenants/self', [
        `BT-API-KEY: ${proxies.control.tenant.managementKey}`,
        'Connection: close',
      ]);
      const begun = request('POST /applications', head('key_none'), '{"name":"');
      const socket = connect(proxies.port, '127.0.0.1', () => socket.write(begun));
      const [first] = await once(socket, 'data');
      expect(String(first)).to.match(/^HTTP\/1\.1 401 /);
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.write(rest + next);
      await once(socket, 'close');
      expect(text).to.match(/^HTTP\/1\.1 200 /);
    });
  });
});
