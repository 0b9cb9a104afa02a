/**
 * Card numbers that exist nowhere else go through proxies, in the right places and in all the wrong ones:
 * to destinations that send them back, break off or answer garbage, through transforms that say them.
 * Afterwards everything that the processes wrote, metrics and answers are searched for them.
 */
import { expect } from 'chai';
import { type Installation, install } from '../faults/installation.ts';
import { type Origin, startOrigin } from '../proxy/origin.ts';
import { randomCardNumber } from '../support/card-numbers.ts';
import { type Answer, type Call, call, type JsonObject } from '../support/http-call.ts';
import { createScanner, needlesOf, type Secret } from './leak-scan.ts';
import { createApplication, REVEAL_ALL } from './planes.ts';

const CARDS: Secret[] = Array.from({ length: 20 }, (_, index) => [
  `card number ${index}`,
  randomCardNumber(),
]);
const SAYING = `module.exports = async (req) => {
  const text = JSON.stringify(req);
  console.log(text);
  const error = new Error(text);
  error.name = text;
  throw error;
};`;
const ALL = [
  { ...REVEAL_ALL[0], permissions: ['token:create', 'token:read', 'token:use', 'token:search'] },
];

/** Sends back what it got, in the way that the path asks for. */
function misbehave(number: string): Record<string, string> {
  const length = `Content-Length: ${number.length}`;
  return {
    '/echo': `HTTP/1.1 200 OK\r\nX-Echo: ${number}\r\n${length}\r\n\r\n${number}`,
    '/moved': `HTTP/1.1 307 ${number}\r\nLocation: http://x/${number}\r\nContent-Length: 0\r\n\r\n`,
    '/garbage': `${number} ${number}\r\n\r\n`,
    '/header': `HTTP/1.1 200 OK\r\n${number}\r\n\r\n`,
    '/framing': `HTTP/1.1 200 OK\r\n${length}\r\nContent-Length: 1\r\n\r\n${number}`,
    '/coding': `HTTP/1.1 200 OK\r\nContent-Encoding: ${number}\r\n${length}\r\n\r\n${number}`,
  };
}

describe('what goes through a proxy', function () {
  this.timeout(120_000);
  let installation: Installation;
  let url: string;
  let origin: Origin;
  let key: string;
  const refusals: string[] = [];

  before(async () => {
    installation = await install({
      ...{ LOG_LEVEL: 'trace', SALLYPORT_EGRESS_ALLOW: '127.0.0.0/8,::1/128' },
      SALLYPORT_EPHEMERAL_PROXY: 'true',
    });
    url = installation.baseUrl();
    origin = await startOrigin((socket, { line, body }) => {
      const number = /\d{12,}/.exec(body)?.[0] ?? '';
      const answer = misbehave(number)[line.split(' ')[1] ?? ''];
      if (answer === undefined) socket.resetAndDestroy();
      else socket.write(answer, 'latin1');
    });
    const { managementKey } = installation;
    ({ key } = await createApplication(url, { managementKey }, { rules: ALL }));
    const plain = await proxy({});
    const speaking = await Promise.all([
      proxy({ request_transform: { code: SAYING } }),
      proxy({ response_transform: { code: SAYING } }),
    ]);
    for (const [, number] of CARDS) {
      const token = await tokenOf(number);
      await useAll(number, token, plain);
      for (const one of speaking) {
        const json = { number: `{{ ${token} }}` };
        expect((await ask('POST /proxy/echo', one, { json })).status).to.equal(500);
      }
      await misuse(number, plain);
    }
  });
  after(async () => {
    await installation?.remove();
    await origin?.close();
  });

  async function proxy(changes: JsonObject): Promise<string> {
    const json = { name: 'Proxy', destination_url: origin.url, ...changes };
    const made = await call(url, 'POST /proxies', { key: installation.managementKey, json });
    expect(made.status, made.text).to.equal(201);
    return String(made.body.key);
  }

  async function tokenOf(number: string): Promise<string> {
    const json = { type: 'card_number', data: number };
    const made = await call(url, 'POST /tokens', { key, json });
    expect(made.status).to.equal(201);
    return String(made.body.id);
  }

  function ask(line: string, proxyKey: string, rest: Call = {}): Promise<Answer<JsonObject>> {
    const headers = { 'bt-proxy-key': proxyKey, ...rest.headers };
    return call(url, line, { key, ...rest, headers }).catch(({ cause }) => {
      // A redirect to nowhere is followed by fetch, and text is no JSON.
      return { status: 0, headers: new Headers(), text: String(cause ?? ''), body: {} };
    });
  }

  async function useAll(number: string, token: string, proxyKey: string): Promise<void> {
    const bodies: Call[] = [
      { json: { number: `{{ ${token} }}` } },
      {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: `number=${encodeURIComponent(`{{ ${token} }}`)}`,
      },
    ];
    const before = origin.received.length;
    for (const body of bodies) {
      for (const path of [...Object.keys(misbehave('')), '/reset']) {
        for (const reserved of [{}, { 'bt-proxy-keep-alive': 'timeout=5' }]) {
          const headers = { ...body.headers, ...reserved };
          const answer = await ask(`POST /proxy${path}`, proxyKey, { ...body, headers });
          if (answer.status === 502) refusals.push(answer.text);
        }
      }
    }
    const sent = origin.received.slice(before);
    expect(sent.length).to.be.greaterThan(20);
    for (const { body } of sent) expect(body.includes(number)).to.equal(true);
  }

  /** The number everywhere it does not belong: each request must be refused. */
  async function misuse(number: string, proxyKey: string): Promise<void> {
    const wrong: [status: number, line: string, rest: Call][] = [
      [404, 'GET /proxy', { headers: { 'bt-proxy-key': number } }],
      [400, `GET /proxy?bt-proxy-key=${number}`, {}],
      [401, 'GET /proxy', { key: number }],
      [400, `GET /proxy/${number}/%2e%2e%3b/%252e%252e/x`, {}],
      [400, 'GET /proxy', { headers: { 'bt-proxy-keep-alive': number } }],
      [400, 'GET /proxy', { headers: { 'bt-proxy-connection': number } }],
      [400, 'POST /proxy', { json: { number: `{{ x | ${number} }}` } }],
      [415, 'POST /proxy', { json: {}, headers: { 'content-encoding': number } }],
      [502, `GET /proxy/reset/${number}?${number}`, { headers: { 'x-number': number } }],
    ];
    for (const [status, line, rest] of wrong) {
      const answer = await ask(line, proxyKey, rest);
      expect(answer.status, line.replaceAll(number, 'N')).to.equal(status);
      refusals.push(answer.text);
    }
    // Tokens that are not there are named to who asked for them; it must stay at that.
    const unknown = await ask('POST /proxy', proxyKey, { json: { number: `{{ ${number} }}` } });
    expect(unknown.status).to.equal(400);
    const headers = { 'bt-proxy-url': `https://${number}@x.example/${number}` };
    const ephemeral = await call(url, 'GET /proxy', { key, headers });
    expect(ephemeral.status).to.equal(400);
    refusals.push(ephemeral.text);
  }

  it('stands in no answer of ours', () => {
    expect(refusals.length).to.be.greaterThan(CARDS.length * 10);
    for (const text of refusals) expect(text).to.contain('proxy_error');
    const scan = createScanner(needlesOf(CARDS));
    expect(scan(Buffer.from(refusals.join('\n')))).to.deep.equal([]);
  });

  it('stands in no line that the processes wrote', () => {
    const output = installation.output();
    expect(output).to.contain('a destination sent back values');
    expect(output).to.contain('a proxied request failed');
    expect(createScanner(needlesOf(CARDS))(Buffer.from(output))).to.deep.equal([]);
  });

  it('stands in no metric', async () => {
    const metrics = await (await fetch(`${installation.metricsUrl()}/metrics`)).text();
    expect(metrics).to.contain('sallyport_proxy_leaks_total');
    expect(createScanner(needlesOf(CARDS))(Buffer.from(metrics))).to.deep.equal([]);
  });
});
