/** What the tests of forwarding share: a gateway, destinations behind it, and one request at a time. */
import { type Answering, OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawAnswer, request, sendRaw } from './raw-client.ts';

/** To be called in a `describe`: starts the gateway before its tests and ends everything after them. */
export function useForwarding() {
  let proxies: Proxies;
  const origins: Origin[] = [];
  before(async () => {
    proxies = await startProxies();
  });
  after(() => proxies?.stop());
  afterEach(async () => {
    for (const origin of origins.splice(0)) await origin.close();
  });

  /** A destination and the headers of a request through a proxy to it. */
  async function behind(
    answering: Answering | string = OK,
    base = '',
  ): Promise<{ origin: Origin; lines: string[]; proxyKey: string }> {
    const origin = await startOrigin(answering);
    origins.push(origin);
    const { key } = await proxies.proxy({ destination_url: origin.url + base });
    const lines = [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`];
    return { origin, lines, proxyKey: key };
  }

  async function send(line: string, lines: string[], body = ''): Promise<RawAnswer> {
    const bytes = request(line, [...lines, 'Connection: close'], body);
    return parseAnswer((await sendRaw(proxies.port, bytes)).text);
  }

  return {
    get proxies(): Proxies {
      return proxies;
    },
    behind,
    send,
  };
}
