/**
 * More requests than a destination may have connections: the others wait, and what is revoked or deleted while they
 * do is not sent (design section 1, invariant 4).
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { WAITING_MAX } from '../../data-plane/proxy/places.ts';
import { CONNECTIONS_MAX } from '../../shared/egress/create-egress.ts';
import { trailOf } from '../api/audit/trail.ts';
import { OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawResult, request, sendRaw, valuesOf } from './raw-client.ts';

const HELD = 'held';

describe('a request that waits for a place at its destination', () => {
  let proxies: Proxies;
  before(async () => {
    proxies = await startProxies({ SANDBOX_HOSTS: '1', SALLYPORT_AUDIT: 'strict' });
  });
  after(() => proxies?.stop());

  let origin: Origin;
  let held: Socket[];
  beforeEach(async () => {
    held = [];
    origin = await startOrigin((socket, { body }) => {
      if (body === HELD) held.push(socket);
      else socket.write(OK);
    });
  });
  afterEach(() => origin.close());

  interface Waiting {
    readonly applicationId: string;
    readonly proxyId: string;
    readonly token: string;
    /** Lets one of those before it be answered. */
    free(): void;
    readonly answer: Promise<RawResult>;
  }

  /** All places are taken, and one more request with a token waits. */
  async function fill(engine: readonly string[]): Promise<Waiting> {
    const { key, id: applicationId } = await proxies.application({ permissions: ['token:use'] });
    const proxy = await proxies.proxy({ destination_url: origin.url });
    const token = await proxies.token('4242424242424242');
    const ask = (body: string) => {
      const lines = [
        ...[`BT-API-KEY: ${key}`, `BT-PROXY-KEY: ${proxy.key}`, ...engine, 'Connection: close'],
        ...['Content-Type: application/json', `Content-Length: ${body.length}`],
      ];
      return sendRaw(proxies.port, request('POST /proxy', lines, body));
    };
    for (let count = 0; count < CONNECTIONS_MAX; count += 1) void ask(HELD);
    while (held.length < CONNECTIONS_MAX) await delay(10);
    const answer = ask(JSON.stringify({ number: `{{ ${token} }}` }));
    // Nothing shows that it waits; that it has not come is checked below.
    await delay(300);
    expect(held).to.have.length(CONNECTIONS_MAX);
    expect(origin.received).to.have.length(CONNECTIONS_MAX);
    return {
      ...{ applicationId, proxyId: proxy.id, token, answer },
      free() {
        for (const socket of held.splice(0)) socket.write(OK);
      },
    };
  }

  const brought = (): number => origin.received.filter(({ body }) => body.includes('4242')).length;

  for (const engine of [[], ['BT-PROXY-CONNECTION: keep-alive']]) {
    const by = engine.length === 0 ? 'undici' : 'http-proxy';
    const changes: [name: string, line: (waiting: Waiting) => string, status: number][] = [
      ['the token is deleted', ({ token }) => `DELETE /tokens/${token}`, 400],
      ['the proxy is deleted', ({ proxyId }) => `DELETE /proxies/${proxyId}`, 404],
      ['the application is deleted', (one) => `DELETE /applications/${one.applicationId}`, 401],
    ];
    for (const [name, line, status] of changes) {
      it(`is not sent when ${name} meanwhile, by ${by}`, async () => {
        const waiting = await fill(engine);
        const isToken = line(waiting).includes('/tokens/');
        const remover = await proxies.application({ permissions: ['token:delete'] });
        await proxies.manage(line(waiting), isToken ? { key: remover.key } : {});
        waiting.free();
        expect(parseAnswer((await waiting.answer).text).status).to.equal(status);
        expect(brought()).to.equal(0);
      });
    }

    it(`is sent when it is its turn, by ${by}`, async () => {
      const waiting = await fill(engine);
      waiting.free();
      expect(parseAnswer((await waiting.answer).text).status).to.equal(200);
      expect(brought()).to.equal(1);
    });
  }

  it('is not sent without the right to its token any more, which the trail tells', async () => {
    const waiting = await fill([]);
    await proxies.manage(`PUT /applications/${waiting.applicationId}`, {
      json: { name: 'Poor', permissions: ['token:create'] },
    });
    waiting.free();
    expect(parseAnswer((await waiting.answer).text).status).to.equal(403);
    expect(brought()).to.equal(0);
    const { pool, tenant } = proxies.control;
    const rows = await trailOf(pool, tenant.id);
    const told = rows.filter(({ actor_id }) => actor_id === waiting.applicationId);
    const use = { operation: 'use', via_type: 'proxy', via_id: waiting.proxyId };
    expect(told).to.have.length(2);
    expect(told[0]).to.include({ ...use, entity_id: waiting.token, denied: false });
    expect(told[1]).to.include({ ...use, entity_id: null, denied: true });
  });

  it('is refused where a thousand wait already', async () => {
    const waiting = await fill([]);
    const { key } = await proxies.application({ permissions: ['token:use'] });
    const proxy = await proxies.proxy({ destination_url: origin.url });
    const lines = [`BT-API-KEY: ${key}`, `BT-PROXY-KEY: ${proxy.key}`, 'Connection: close'];
    const others = Array.from({ length: WAITING_MAX }, () =>
      sendRaw(proxies.port, request('GET /proxy', lines)),
    );
    // One of them came too many.
    const refused = parseAnswer((await Promise.race(others)).text);
    expect(refused.status).to.equal(429);
    expect(valuesOf(refused, 'retry-after')).to.deep.equal(['1']);
    expect(JSON.parse(refused.body)).to.have.nested.property('proxy_error.status', 429);
    waiting.free();
    const statuses = (await Promise.all(others)).map(({ text }) => parseAnswer(text).status);
    expect(statuses.filter((status) => status === 200)).to.have.length(WAITING_MAX - 1);
    expect(parseAnswer((await waiting.answer).text).status).to.equal(200);
  });

  it('goes nowhere when its proxy leads elsewhere by then', async () => {
    const elsewhere = await startOrigin(OK);
    const waiting = await fill([]);
    await proxies.manage(`PATCH /proxies/${waiting.proxyId}`, {
      json: { destination_url: elsewhere.url },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    waiting.free();
    const { status } = parseAnswer((await waiting.answer).text);
    await elsewhere.close();
    expect(status).to.equal(503);
    expect([brought(), elsewhere.received]).to.deep.equal([0, []]);
  });

  for (const engine of [[], ['BT-PROXY-CONNECTION: keep-alive']]) {
    it(`leaves no place taken, however those before it end${engine.length > 0 ? ', by http-proxy' : ''}`, async () => {
      const broken = await fill(engine);
      for (const socket of held.splice(0)) socket.resetAndDestroy();
      expect(parseAnswer((await broken.answer).text).status).to.equal(200);
      origin.received.length = 0;
      // It takes all places again.
      const waiting = await fill(engine);
      waiting.free();
      expect(parseAnswer((await waiting.answer).text).status).to.equal(200);
    });
  }

  it('leaves no place taken by callers who left around their turn', async () => {
    const waiting = await fill([]);
    const { key } = await proxies.application({ permissions: ['token:use'] });
    const proxy = await proxies.proxy({ destination_url: origin.url });
    const lines = [`BT-API-KEY: ${key}`, `BT-PROXY-KEY: ${proxy.key}`];
    const body = ['Content-Type: text/plain', 'Content-Length: 3'];
    const bytes = request('POST /proxy', [...lines, ...body], 'abc');
    const callers = Array.from({ length: 100 }, () => {
      const caller = connect(proxies.port, '127.0.0.1', () => caller.write(bytes));
      return caller.on('error', () => undefined);
    });
    await delay(300);
    for (const [index, caller] of callers.entries()) {
      setTimeout(() => caller.resetAndDestroy(), index % 20);
    }
    await delay(5);
    waiting.free();
    await waiting.answer;
    await delay(100);
    origin.received.length = 0;
    const again = await fill([]);
    again.free();
    await again.answer;
  });
});
