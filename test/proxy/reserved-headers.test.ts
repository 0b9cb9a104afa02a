/** BT-PROXY-KEEP-ALIVE and BT-PROXY-CONNECTION: the same forwarding, by the other engine. */
import { expect } from 'chai';
import { OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawResult, request, sendRaw } from './raw-client.ts';

describe('reserved headers of the connection', () => {
  let proxies: Proxies;
  before(async () => {
    proxies = await startProxies();
  });
  after(() => proxies?.stop());

  const origins: Origin[] = [];
  afterEach(async () => {
    for (const origin of origins.splice(0)) await origin.close();
  });

  async function behind(
    ...answering: Parameters<typeof startOrigin>
  ): Promise<{ origin: Origin; lines: string[] }> {
    const origin = await startOrigin(...answering);
    origins.push(origin);
    const { key } = await proxies.proxy({ destination_url: `${origin.url}/base?own=1` });
    const keys = [`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`];
    return { origin, lines: [...keys, 'BT-PROXY-KEEP-ALIVE: timeout=5, max=100'] };
  }

  const send = (line: string, lines: string[], body = ''): Promise<RawResult> =>
    sendRaw(proxies.port, request(line, [...lines, 'Connection: close'], body));

  it('reach the destination in place of ours, and nothing else changes', async () => {
    const { origin, lines } = await behind(
      'HTTP/1.1 418 X\r\nSet-Cookie: a=1\r\nx-B: 2\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok',
    );
    const more = [
      ...['X-One: a', 'Cookie: a=1', 'X-Two: b', 'x-one: c', 'Cookie: b=2'],
      'Content-Type: text/plain',
      'BT-TRACE-ID: trace-1',
    ];
    const connection = 'BT-PROXY-CONNECTION: close';
    const { text } = await send(
      'POST /proxy/a%20b/?u=http://x.example//y&z',
      [...lines, connection, ...more, 'Content-Length: 4'],
      'body',
    );
    const answer = parseAnswer(text);
    expect([answer.status, answer.body]).to.deep.equal([418, 'ok']);
    expect(answer.headers.slice(0, 5)).to.deep.equal([
      ...['Set-Cookie: a=1', 'x-B: 2', 'Set-Cookie: b=2', 'Content-Length: 2'],
      'bt-proxy-destination-status: 418',
    ]);
    const [seen] = origin.received;
    expect(seen?.line).to.equal('POST /base/a%20b/?own=1&u=http://x.example//y&z HTTP/1.1');
    expect(seen?.body).to.equal('body');
    expect(seen?.headers).to.deep.equal([
      ...[`Host: localhost:${origin.port}`, ...more, 'content-length: 4'],
      ...['Keep-Alive: timeout=5, max=100', 'Connection: close'],
    ]);
  });

  it('go with every method and framing', async () => {
    const { origin, lines } = await behind(OK);
    const chunked = [...lines, 'Transfer-Encoding: chunked'];
    for (const method of ['GET', 'POST', 'DELETE', 'PATCH']) {
      expect(parseAnswer((await send(`${method} /proxy`, lines)).text).status).to.equal(200);
      const answer = await send(`${method} /proxy`, chunked, '3\r\nabc\r\n0\r\n\r\n');
      expect(parseAnswer(answer.text).status).to.equal(200);
    }
    const bodies = origin.received.map(({ line, body }) => `${line.split(' ')[0]} ${body}`);
    for (const { headers } of origin.received) {
      const framing = headers.filter((one) => /^(?:content-length|transfer-encoding):/i.test(one));
      expect(framing.length, framing.join()).to.be.lessThan(2);
    }
    expect(bodies).to.deep.equal(
      ['GET', 'POST', 'DELETE', 'PATCH'].flatMap((one) => [`${one} `, `${one} abc`]),
    );
  });

  it('lose no header of an answer, however many there are', async () => {
    const many = Array.from({ length: 2_000 }, (_, index) => `a:${index % 10}`);
    const { lines } = await behind(
      ['HTTP/1.1 200 OK', ...many, 'X-Last: 1', 'Content-Length: 2', '', 'ok'].join('\r\n'),
    );
    const { headers, body } = parseAnswer((await send('GET /proxy', lines)).text);
    const back = [...many.map((one) => one.replace(':', ': ')), 'X-Last: 1', 'Content-Length: 2'];
    expect(headers.slice(0, back.length)).to.deep.equal(back);
    expect(body).to.equal('ok');
  });

  it('have values that frame nothing', async () => {
    const { origin, lines } = await behind(OK);
    const keys = lines.slice(0, 2);
    const refused = [
      ...['BT-PROXY-CONNECTION: close, content-length', 'BT-PROXY-CONNECTION: upgrade'],
      ...[
        'BT-PROXY-KEEP-ALIVE: timeout=5; x',
        'BT-PROXY-KEEP-ALIVE: timeout=5, Timeout=6',
        'BT-PROXY-KEEP-ALIVE: max=5,max=6',
        'BT-PROXY-KEEP-ALIVE: timeout=',
        'BT-PROXY-KEEP-ALIVE: ',
      ],
      ...['BT-PROXY-KEEP-ALIVE: timeout=5, max=1, timeout=2', 'BT-PROXY-CONNECTION: '],
    ];
    for (const line of refused) {
      const answer = parseAnswer((await send('GET /proxy', [...keys, line])).text);
      expect([answer.status, Object.keys(JSON.parse(answer.body))], line).to.deep.equal([
        ...[400, ['proxy_error']],
      ]);
    }
    expect(origin.received).to.deep.equal([]);
  });

  it('do not make a broken destination a whole one', async () => {
    const cases: [string, number][] = [
      ['garbage\r\n\r\n', 502],
      ['HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 502],
      [`${'HTTP/1.1 103 X\r\n\r\n'.repeat(1_000)}${OK}`, 502],
      ['HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n', 502],
      ['HTTP/1.1 101 X\r\nContent-Length: 2\r\n\r\nab', 502],
      [`HTTP/1.1 100 Continue\r\n\r\n${OK}`, 502],
      [OK, 200],
    ];
    for (const [bytes, status] of cases) {
      const { lines } = await behind(bytes);
      expect(parseAnswer((await send('GET /proxy', lines)).text).status).to.equal(status);
    }
    const { lines } = await behind((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    );
    expect((await send('GET /proxy', lines)).ending).to.equal('reset');
  });
});
