/**
 * What a request transform is given by reactors and proxies that it calls: brought out for it, so its
 * destination should not answer it back, whatever it makes of it.
 */
import { expect } from 'chai';
import { type Answering, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, request, sendRaw } from './raw-client.ts';
import { transform } from './transforming.ts';

const SECRET = '4242424242424242';
const STARS = '*'.repeat(SECRET.length);
const ALL_CLEAR = {
  rules: [
    {
      ...{ priority: 1, container: '/', transform: 'reveal' },
      permissions: ['token:read', 'token:use'],
    },
  ],
};

describe('what a request transform gets from what it calls', () => {
  let proxies: Proxies;
  let application: { id: string };
  let token: string;
  const origins: Origin[] = [];
  before(async () => {
    proxies = await startProxies({ SANDBOX_HOSTS: '1' });
    const { id } = await proxies.application(ALL_CLEAR);
    application = { id };
    token = await proxies.token({ number: '4242 4242 4242 4242' });
  });
  after(() => proxies?.stop());
  afterEach(async () => {
    for (const origin of origins.splice(0)) await origin.close();
  });

  const answering = (content: string, ...headers: string[]): string =>
    ['HTTP/1.1 200 OK', ...headers, `Content-Length: ${content.length}`, '', content].join('\r\n');
  const number = "json: '$.number' | remove: ' '";
  /** Braces in the text of a script are expressions only where it sends them. */
  const expression = (): string => `'{' + "{ ${token} | ${number} }" + '}'`;

  async function startAnswering(answer: Answering | string): Promise<Origin> {
    const origin = await startOrigin(answer);
    origins.push(origin);
    return origin;
  }

  /** The key of a proxy to a destination that answers with what it gets. */
  async function echoing(more = {}): Promise<string> {
    const echo: Answering = (socket, { body }) =>
      socket.write(answering(body, 'Content-Type: application/json'));
    const { url } = await startAnswering(echo);
    const draft = { destination_url: url, application, ...more };
    return (await proxies.proxy(draft)).key;
  }

  async function reactor(code: string): Promise<string> {
    const json = { name: 'R', application, ...transform(code) };
    return String((await proxies.manage('POST /reactors', { json })).id);
  }

  /** `code` has the number in `pan` when it is through. */
  async function ask(code: string): Promise<{ sent: string | undefined; answered: string }> {
    const origin = await startAnswering(answering(`pan ${SECRET} known`));
    const draft = {
      ...{ destination_url: origin.url, application, leak_tripwire: 'redact' },
      request_transform: transform(`${code} return { body: { pan } };`),
    };
    const { key } = await proxies.proxy(draft);
    const lines = [
      ...[`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`, 'Connection: close'],
      ...['Content-Type: application/json', 'Content-Length: 2'],
    ];
    const { text } = await sendRaw(proxies.port, request('POST /proxy', lines, '{}'));
    return { sent: origin.received[0]?.body, answered: parseAnswer(text).body };
  }

  const posting = (key: string, n: string): string => `
    const headers = { 'BT-PROXY-KEY': '${key}', 'content-type': 'application/json' };
    const { n: pan } = await req.bt.proxy.post({ headers, body: { n: ${n} } });`;
  const reacting = (id: string, n: string): string =>
    `const { raw } = await req.bt.reactors.react('${id}', { args: { n: ${n} } }); const pan = raw.n;`;

  const calls: Record<string, () => Promise<string>> = {
    'the arguments of a reactor': async () =>
      reacting(await reactor('return { raw: { n: req.args.n } };'), expression()),
    'a reactor that reads a token': async () => {
      const code = `const token = await req.bt.tokens.retrieve(req.args.n);
        return { raw: { n: token.data.number } };`;
      const id = await proxies.token({ number: SECRET });
      return reacting(await reactor(code), `'${id}'`);
    },
    'the body of a proxy': async () => posting(await echoing(), expression()),
    'the body of a proxy without a tripwire': async () =>
      posting(await echoing({ leak_tripwire: 'off' }), expression()),
    'a proxy whose transform calls a reactor': async () => {
      const id = await reactor('return { raw: { n: req.args.n } };');
      const code = `${reacting(id, expression())} return { body: { n: pan } };`;
      return posting(await echoing({ request_transform: transform(code) }), '1');
    },
    'a detokenized text with values side by side': async () => `
      const { n } = await req.bt.detokenize({ n: ${expression()} + ${expression()} });
      const pan = n.slice(0, 16);`,
  };
  for (const [where, prepare] of Object.entries(calls)) {
    it(`is masked in its destination's answer: ${where}`, async () => {
      const { sent, answered } = await ask(await prepare());
      expect([sent, answered]).to.deep.equal([`{"pan":"${SECRET}"}`, `pan ${STARS} known`]);
    });
  }
});
