/** Destinations that send back what was brought out for them: reported, masked, or passed as told. */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawAnswer, request, sendRaw, valuesOf } from './raw-client.ts';

const SECRET = '4242424242424242';

describe('a destination that sends values back', () => {
  let proxies: Proxies;
  let token: string;
  before(async () => {
    proxies = await startProxies();
    token = await proxies.token({ number: SECRET, short: 'abc' });
  });
  after(() => proxies?.stop());

  const origins: Origin[] = [];
  afterEach(async () => {
    for (const origin of origins.splice(0)) await origin.close();
  });

  async function ask(
    answer: (body: string) => string,
    leak_tripwire?: string,
    { body = `{"number":"{{ ${token} | json: '$.number' }}"}`, type = 'application/json' } = {},
  ): Promise<{ answer: RawAnswer; origin: Origin; leaks: [number, number] }> {
    const origin = await startOrigin((socket, { body }) => socket.write(answer(body), 'latin1'));
    origins.push(origin);
    const tripwire = leak_tripwire === undefined ? {} : { leak_tripwire };
    const { key } = await proxies.proxy({ destination_url: origin.url, ...tripwire });
    const lines = [
      ...[`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`, 'Connection: close'],
      ...[`Content-Type: ${type}`, `Content-Length: ${body.length}`, 'Accept-Encoding: gzip'],
    ];
    const before = await countLeaks();
    const { text } = await sendRaw(proxies.port, request('POST /proxy', lines, body));
    const after = await countLeaks();
    const leaks: [number, number] = [after[0] - before[0], after[1] - before[1]];
    return { answer: parseAnswer(text), origin, leaks };
  }

  async function countLeaks(): Promise<[number, number]> {
    const name = 'sallyport_proxy_leaks_total';
    const of = (place: string): Promise<number> => proxies.metric(name, { place });
    return [await of('headers'), await of('body')];
  }

  const echo = (body: string): string =>
    `HTTP/1.1 200 OK\r\nX-Echo: ${SECRET}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

  it('is reported by default, and its answer passes as it is', async () => {
    const { answer, origin, leaks } = await ask(echo);
    expect(origin.received[0]?.body).to.equal(`{"number":"${SECRET}"}`);
    expect(answer.body).to.equal(`{"number":"${SECRET}"}`);
    expect(leaks).to.deep.equal([1, 1]);
  });

  it('is masked where the proxy says so, the length kept, and asked not to compress', async () => {
    const { answer, origin, leaks } = await ask(echo, 'redact');
    expect(answer.body).to.equal(`{"number":"${'*'.repeat(16)}"}`);
    expect(valuesOf(answer, 'x-echo')).to.deep.equal(['*'.repeat(16)]);
    expect(valuesOf(answer, 'content-length')).to.deep.equal([String(answer.body.length)]);
    expect(origin.received[0]?.headers).to.include('Accept-Encoding: identity');
    expect(leaks).to.deep.equal([1, 1]);
  });

  it('is not looked at with the tripwire off', async () => {
    const { answer, leaks } = await ask(echo, 'off');
    expect(answer.body).to.contain(SECRET);
    expect(leaks).to.deep.equal([0, 0]);
  });

  it('is reported through its compression, the bytes untouched', async () => {
    const bytes = gzipSync(`{"number":"${SECRET}"}`).toString('latin1');
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bytes.length}\r\n\r\n`;
    const before = await countLeaks();
    const { answer } = await ask(() => head + bytes);
    expect(answer.body).to.equal(bytes);
    // Decoded beside the answer: it may be seen a moment later.
    while ((await countLeaks())[1] === before[1]) await new Promise(setImmediate);
  });

  const spaced = "id | remove: ' '";
  const made: [string, string, string][] = [
    ['in a text', 'application/json', `{"number":"pan {{ ${spaced} }} end"}`],
    ['as a list', 'application/json', `{"number":"{{ ${spaced} | split: ',' }}"}`],
    ['in a text of a form', 'application/x-www-form-urlencoded', `n=pan {{ ${spaced} }}`],
    ['beside each other', 'application/json', `["{{ ${spaced} }}{{ ${spaced} | slice: 4, 12 }}"]`],
  ];
  for (const [where, type, source] of made) {
    it(`is masked where it is what an expression made, ${where}`, async () => {
      const id = await proxies.token('4242 4242 4242 4242');
      const answered = (): string => echo(`{"echo":"${SECRET}","text":"pan  end"}`);
      const { answer, origin, leaks } = await ask(answered, 'redact', {
        type,
        body: source.replaceAll('{{ id', `{{ ${id}`),
      });
      expect(origin.received[0]?.body).to.contain(SECRET);
      expect(answer.body).to.equal(`{"echo":"${'*'.repeat(16)}","text":"pan  end"}`);
      expect(leaks).to.deep.equal([1, 1]);
    });
  }

  const printed: [string, string][] = [
    ['json_encode of PHP', '"https:\\/\\/bank\\/user\\/12345678"'],
    ['json.dumps of Python', '"J\\u00fcrgen M\\u00fcller"'],
  ];
  for (const [printer, json] of printed) {
    it(`is masked as ${printer} writes it`, async () => {
      const body = `["{{ ${await proxies.token(JSON.parse(json))} }}"]`;
      const { answer } = await ask(
        () => `HTTP/1.1 200 OK\r\nContent-Length: ${json.length}\r\n\r\n${json}`,
        'redact',
        { body },
      );
      expect(answer.body).to.equal(`"${'*'.repeat(json.length - 2)}"`);
    });
  }

  it('is not blamed for anything else', async () => {
    const body = '{"last4":"4242","short":"abc"}';
    const { answer, leaks } = await ask(
      () => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      'redact',
    );
    expect(answer.body).to.equal(body);
    expect(leaks).to.deep.equal([0, 0]);
  });
});
