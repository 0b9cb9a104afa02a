/**
 * Destinations that keep a caller waiting (faults F-32), through a running proxy and at its real limits:
 * all of them wait side by side.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { type Answering, type Origin, startOrigin } from './origin.ts';
import { type Proxies, type ProxyDraft, startProxies } from './proxies.ts';
import { parseAnswer, type RawResult, request, sendRaw } from './raw-client.ts';
import { transform } from './transforming.ts';

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n';
const RESERVED = 'BT-PROXY-CONNECTION: keep-alive';
const TRANSFORMED = { response_transform: transform('return { body: req.args.body };') };

/** A byte a second, for ever. */
const drip: Answering = (socket) => {
  socket.write(HEAD);
  const timer = setInterval(() => socket.write('a'), 1_000);
  socket.on('close', () => clearInterval(timer));
};
const silence: Answering = () => undefined;

describe('a destination that keeps one waiting', () => {
  let proxies: Proxies;
  before(async () => {
    proxies = await startProxies({ SANDBOX_HOSTS: '1' });
  });
  after(() => proxies?.stop());
  const origins: Origin[] = [];
  afterEach(async () => {
    for (const origin of origins.splice(0)) await origin.close();
  });

  async function behind(
    answering: Answering,
    draft: Partial<ProxyDraft> = {},
  ): Promise<{ origin: Origin; lines: string[] }> {
    const origin = await startOrigin(answering);
    origins.push(origin);
    const { key } = await proxies.proxy({ destination_url: origin.url, ...draft });
    return { origin, lines: [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`] };
  }

  const ended = (outcome: string): Promise<number> =>
    proxies.metric('sallyport_proxy_requests_total', { outcome });

  /** What the caller got, and that the destination was left. */
  async function ask(...[answering, draft, more = []]: Case): Promise<RawResult> {
    const { origin, lines } = await behind(answering, draft);
    const result = await sendRaw(
      proxies.port,
      request('GET /proxy', [...lines, ...more, 'Connection: close']),
    );
    await origin.allClosed();
    return result;
  }

  type Case = [answering: Answering, draft?: Partial<ProxyDraft>, more?: string[]];

  it('is given up after 25 s: 408 before an answer has begun, a reset within it', async function () {
    this.timeout(60_000);
    const without: Case[] = [
      [silence],
      [silence, {}, [RESERVED]],
      [silence, TRANSFORMED],
      // Nothing of it has gone out when it is given up.
      [drip, TRANSFORMED],
      [drip, TRANSFORMED, [RESERVED]],
    ];
    const begun: Case[] = [[drip], [drip, {}, [RESERVED]]];
    const all = await Promise.all([...without, ...begun].map((one) => ask(...one)));
    for (const { text, ending } of all.slice(0, without.length)) {
      const { status, body } = parseAnswer(text);
      expect([status, Object.keys(JSON.parse(body)), ending]).to.deep.equal([
        ...[408, ['proxy_error'], 'end'],
      ]);
    }
    for (const { text, ending } of all.slice(without.length)) {
      expect([parseAnswer(text).status, ending]).to.deep.equal([200, 'reset']);
    }
    expect([await ended('destination_timeout'), await ended('destination_reset')]).to.deep.equal([
      ...[without.length, begun.length],
    ]);
  });

  for (const more of [[], [RESERVED]]) {
    const engine = more.length === 0 ? '' : ', by the other engine';
    it(`is left when its caller goes while a transform waits for the answer${engine}`, async () => {
      const before = await ended('caller_gone');
      const { origin, lines } = await behind(drip, TRANSFORMED);
      const caller = connect(proxies.port, '127.0.0.1');
      caller.write(request('GET /proxy', [...lines, ...more]));
      while (origin.received.length === 0) await new Promise(setImmediate);
      // The head of the answer has to be there first; then nothing tells a wait from another.
      await new Promise((resolve) => setTimeout(resolve, 300));
      caller.destroy();
      await once(caller, 'close');
      await origin.allClosed();
      while ((await ended('caller_gone')) === before) await new Promise(setImmediate);
    });
  }
});
