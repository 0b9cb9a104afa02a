/** Forwarding over raw sockets: what a destination gets is what the caller sent, and the other way. */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { type Answering, OK, type Origin, startOrigin } from './origin.ts';
import { type Proxies, startProxies } from './proxies.ts';
import { parseAnswer, type RawAnswer, request, sendRaw, valuesOf } from './raw-client.ts';

describe('forwarding', () => {
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

  describe('of requests', () => {
    it('passes method, path, merged query, and headers in order and case, repeated ones too', async () => {
      const { origin, lines } = await behind(OK, '/api//?own=1');
      const theirs = [
        'X-One: a',
        'x-ONE: b',
        'Via: 1.0 a',
        'X-Forwarded-For: 9.9.9.9',
        'Cookie: c=d',
      ];
      const text = ['Content-Type: text/plain', 'Content-Length: 4', 'BT-TRACE-ID: trace-7'];
      const answer = await send(
        'PATCH /proxy/a/b%20c/?x=%20y&x=2',
        [...theirs, ...lines, ...text, 'Authorization: Basic abc', 'Accept-Encoding: br'],
        'body',
      );
      expect(answer.status).to.equal(200);
      expect(origin.received).to.deep.equal([
        {
          line: 'PATCH /api/a/b%20c/?own=1&x=%20y&x=2 HTTP/1.1',
          headers: [
            `host: localhost:${origin.port}`,
            'connection: keep-alive',
            ...theirs,
            'Content-Type: text/plain',
            'Authorization: Basic abc',
            'Accept-Encoding: br',
            'BT-TRACE-ID: trace-7',
            'content-length: 4',
          ],
          body: 'body',
        },
      ]);
    });

    it('drops what is ours, what is of the connection, and names with odd characters', async () => {
      const { origin, lines } = await behind();
      const dropped = [
        ...['BT-IDEMPOTENCY-KEY: 1', 'Bt-Client-User-Agent: {}', 'bt-proxy-url: https://x.example'],
        ...['TE: trailers', 'Trailer: X', 'Keep-Alive: timeout=1', 'Proxy-Authorization: secret'],
        ...['Proxy-Connection: keep-alive', 'X-Gone: 1', "X'Odd: 1", 'X.Dot: 1', 'X_Ok: 1'],
      ];
      const bytes = request('GET /proxy/x', [...lines, ...dropped, 'Connection: close, x-gone']);
      await sendRaw(proxies.port, bytes);
      const names = origin.received[0]?.headers.map((header) => header.split(':')[0]);
      expect(names).to.deep.equal(['host', 'connection', 'X_Ok', 'BT-TRACE-ID']);
    });

    it('takes the key from the query and does not pass it on, in whatever spelling', async () => {
      const { origin, lines, proxyKey } = await behind(OK, '?own=1');
      const [apiKey = ''] = lines;
      for (const name of ['bt-proxy-key', 'BT-Proxy-Key', 'bt%2Dproxy-ke%79']) {
        await send(`GET /proxy?a=1&${name}=${proxyKey}&b=%zz`, [apiKey]);
      }
      await send(`GET /proxy/?bt-proxy-key=${proxyKey}`, lines);
      expect(origin.received.map(({ line }) => line)).to.deep.equal([
        ...Array(3).fill('GET /?own=1&a=1&b=%zz HTTP/1.1'),
        'GET /?own=1 HTTP/1.1',
      ]);
    });

    it('serves every method, with and without a body', async () => {
      const { origin, lines } = await behind();
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
        await send(`${method} /proxy`, lines);
        await send(`${method} /proxy`, [...lines, 'Content-Length: 3'], 'abc');
      }
      const seen = origin.received.map(({ line, body }) => `${line.split(' ')[0]} ${body}`);
      expect(seen).to.deep.equal(
        ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].flatMap((one) => [`${one} `, `${one} abc`]),
      );
    });

    it('streams chunks as chunks, without their extensions and trailers', async () => {
      const { origin, lines } = await behind();
      const framing = ['Transfer-Encoding: chunked', 'Content-Type: application/octet-stream'];
      const body = '3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: 1\r\nAuthorization: x\r\n\r\n';
      const answer = await send('POST /proxy', [...lines, ...framing], body);
      expect(answer.status).to.equal(200);
      expect(origin.received[0]?.body).to.equal('abcde');
      expect(origin.received[0]?.headers.join()).to.not.match(
        /trailer|content-length|authorization/i,
      );
      expect(origin.received[0]?.headers).to.include('transfer-encoding: chunked');
    });

    it('leaves JSON without expressions as it came, and gives a chunked one a length', async () => {
      const { origin, lines } = await behind();
      const json = '{ "a":1.0,"a" : 1e2,\t"b":"\\u0041" }';
      const type = 'Content-Type: application/json';
      await send('POST /proxy', [...lines, type, `Content-Length: ${json.length}`], json);
      const chunk = `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`;
      await send('POST /proxy', [...lines, type, 'Transfer-Encoding: chunked'], chunk);
      expect(origin.received.map(({ body }) => body)).to.deep.equal([json, json]);
      expect(origin.received[1]?.headers).to.include(`content-length: ${json.length}`);
    });

    it('leaves compressed JSON without expressions as it came', async () => {
      const { origin, lines } = await behind();
      const bytes = gzipSync('{"a":1}').toString('latin1');
      const coded = ['Content-Type: application/json', 'Content-Encoding: gzip'];
      await send('POST /proxy', [...lines, ...coded, `Content-Length: ${bytes.length}`], bytes);
      expect(origin.received[0]?.body).to.equal(bytes);
      expect(origin.received[0]?.headers).to.include('Content-Encoding: gzip');
    });

    it('puts the values of tokens into compressed JSON, and sends it plain', async () => {
      const { origin, lines } = await behind();
      const id = await proxies.token('secret-value');
      const bytes = gzipSync(`{"a":"{{ ${id} }}"}`).toString('latin1');
      const coded = ['Content-Type: application/json', 'Content-Encoding: gzip'];
      await send('POST /proxy', [...lines, ...coded, `Content-Length: ${bytes.length}`], bytes);
      expect(origin.received[0]?.body).to.equal('{"a":"secret-value"}');
      expect(origin.received[0]?.headers.join()).to.not.match(/content-encoding/i);
    });

    it('asks for a body with 100 only when the caller may send it', async () => {
      const { origin, lines } = await behind();
      const waits = ['Content-Length: 3', 'Expect: 100-continue', 'Connection: close'];
      const refused = await sendRaw(proxies.port, request('POST /proxy', waits));
      expect(parseAnswer(refused.text).status).to.equal(400);
      const bytes = request('POST /proxy', [...lines, ...waits], 'abc');
      const { text } = await sendRaw(proxies.port, bytes);
      expect(text).to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
      expect(origin.received.map(({ body }) => body)).to.deep.equal(['abc']);
      expect(origin.received[0]?.headers.join()).to.not.match(/expect/i);
    });

    it('leaves expressions in path, query and headers alone', async () => {
      const { origin, lines } = await behind();
      await send('GET /proxy/%7B%7Bid%7D%7D?q={{id}}', [...lines, 'X-Token: {{ id }}']);
      expect(origin.received[0]?.line).to.equal('GET /%7B%7Bid%7D%7D?q={{id}} HTTP/1.1');
      expect(origin.received[0]?.headers).to.include('X-Token: {{ id }}');
    });
  });

  describe('of answers', () => {
    it('passes status, headers in order and case, repeated ones too, and the body', async () => {
      const { lines } = await behind(
        'HTTP/1.1 418 Teapot\r\nX-B: 2\r\nset-cookie: a=1\r\nX-A: 1\r\nSet-Cookie: b=2\r\n' +
          'Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 3\r\nX-Latin: caf\xe9\r\n\r\nabc',
      );
      const answer = await send('GET /proxy', [...lines, 'BT-TRACE-ID: trace-8']);
      expect(answer.status).to.equal(418);
      expect(answer.body).to.equal('abc');
      expect(answer.headers).to.deep.equal([
        ...['X-B: 2', 'set-cookie: a=1', 'X-A: 1', 'Set-Cookie: b=2'],
        ...['Date: Thu, 01 Jan 1970 00:00:00 GMT', 'Content-Length: 3', 'X-Latin: caf\xe9'],
        'bt-proxy-destination-status: 418',
        'bt-trace-id: trace-8',
        'cache-control: no-store',
        'access-control-allow-origin: *',
        'access-control-expose-headers: bt-trace-id, bt-proxy-destination-status',
        'Connection: close',
      ]);
    });

    it('drops what is ours and what is of the connection', async () => {
      const { lines } = await behind(
        'HTTP/1.1 200 OK\r\nBT-PROXY-DESTINATION-STATUS: 500\r\nbt-trace-id: forged\r\n' +
          'Keep-Alive: timeout=9\r\nConnection: keep-alive, X-Gone, Content-Length\r\nX-Gone: 1\r\n' +
          'Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\nTrailer: X\r\nContent-Length: 2\r\n\r\nok',
      );
      const answer = await send('GET /proxy', [...lines, 'BT-TRACE-ID: mine']);
      expect(valuesOf(answer, 'bt-proxy-destination-status')).to.deep.equal(['200']);
      expect(valuesOf(answer, 'bt-trace-id')).to.deep.equal(['mine']);
      expect(valuesOf(answer, 'content-length')).to.deep.equal(['2']);
      const gone = /^(?:keep-alive|x-gone|proxy-authenticate|upgrade|trailer):/im;
      expect(answer.headers.join('\n')).to.not.match(gone);
    });

    it('lets the destination decide who may read and keep its answer', async () => {
      const { lines } = await behind(
        'HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: https://a.example\r\n' +
          'Cache-Control: max-age=5\r\nContent-Length: 0\r\n\r\n',
      );
      const answer = await send('GET /proxy', lines);
      const origin = valuesOf(answer, 'access-control-allow-origin');
      expect(origin).to.deep.equal(['https://a.example']);
      expect(valuesOf(answer, 'cache-control')).to.deep.equal(['max-age=5']);
    });

    it('frames 204, 304 and HEAD by the rules, whatever the destination sends', async () => {
      const { lines } = await behind((socket, { line }) => {
        const status = /\?(\d+)/.exec(line)?.[1] ?? '200';
        socket.write(`HTTP/1.1 ${status} X\r\nContent-Length: 3\r\n\r\n`);
        if (!line.startsWith('HEAD')) socket.write('abc');
      });
      const none = await send('GET /proxy?204', lines);
      expect([none.status, none.body]).to.deep.equal([204, '']);
      expect(valuesOf(none, 'content-length')).to.deep.equal([]);
      const unchanged = await send('GET /proxy?304', lines);
      expect([unchanged.status, unchanged.body]).to.deep.equal([304, '']);
      const headOnly = await send('HEAD /proxy', lines);
      expect([headOnly.status, headOnly.body]).to.deep.equal([200, '']);
      expect(valuesOf(headOnly, 'content-length')).to.deep.equal(['3']);
    });

    it('passes a redirect on and never follows it', async () => {
      const to = 'http://169.254.169.254/latest/meta-data';
      const { origin, lines } = await behind(
        `HTTP/1.1 307 X\r\nLocation: ${to}\r\nContent-Length: 0\r\n\r\n`,
      );
      const answer = await send('POST /proxy', [...lines, 'Content-Length: 0']);
      expect(answer.status).to.equal(307);
      expect(valuesOf(answer, 'location')).to.deep.equal([to]);
      expect(origin.received).to.have.length(1);
    });

    it('passes compressed bytes on untouched', async () => {
      const bytes = gzipSync('hello hello hello').toString('latin1');
      const { lines } = await behind(
        `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bytes.length}\r\n\r\n${bytes}`,
      );
      const answer = await send('GET /proxy', lines);
      expect(answer.body).to.equal(bytes);
      expect(valuesOf(answer, 'content-encoding')).to.deep.equal(['gzip']);
    });

    it('ends a body without a length as the destination does: with the connection', async () => {
      const { lines } = await behind((socket) =>
        socket.end('HTTP/1.0 200 OK\r\n\r\nuntil the end'),
      );
      const { text, ending } = await sendRaw(proxies.port, request('GET /proxy', lines));
      const answer = parseAnswer(text);
      expect([answer.status, answer.body, ending]).to.deep.equal([200, 'until the end', 'end']);
      expect(valuesOf(answer, 'connection')).to.deep.equal(['close']);
      expect(valuesOf(answer, 'transfer-encoding')).to.deep.equal([]);
    });
  });

  it('serves pipelined requests of one connection in order, each by its own keys', async () => {
    const first = await behind('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none');
    const second = await behind('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo');
    const [apiKey = ''] = second.lines;
    const bytes =
      request('GET /proxy', first.lines) +
      request('GET /proxy', [apiKey, 'BT-PROXY-KEY: 1111111111111111111111']) +
      request('GET /proxy', [...second.lines, 'Connection: close']);
    const { text } = await sendRaw(proxies.port, bytes);
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal([
      ...['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 200'],
    ]);
    expect(text.indexOf('one')).to.be.lessThan(text.indexOf('two'));
  });

  it('asks the database once: for the version alone, or along with the tokens', async () => {
    const { lines } = await behind();
    const id = await proxies.token('value');
    const json = 'Content-Type: application/json';
    const post = (body: string): Promise<RawAnswer> =>
      send('POST /proxy', [...lines, json, `Content-Length: ${body.length}`], body);
    const reads = (): Promise<number> => proxies.metric('sallyport_gate_reads_total');
    await post('{}');
    const before = await reads();
    await post('{}');
    expect((await reads()) - before).to.equal(1);
    await post(`{"a":"{{ ${id} }}"}`);
    expect((await reads()) - before).to.equal(1);
  });

  it('keeps connections to a destination, one tenant apart from another', async () => {
    const { origin, lines } = await behind();
    for (let count = 0; count < 5; count += 1) await send('GET /proxy', lines);
    expect(origin.connections()).to.equal(1);
    const other = await proxies.control.addTenant('Other');
    const rules = [{ priority: 1, container: '/', transform: 'mask', permissions: ['token:use'] }];
    const { key } = await proxies.application({ rules }, other);
    const theirs = await proxies.proxy({ destination_url: origin.url }, other);
    await send('GET /proxy', [`BT-API-KEY: ${key}`, `BT-PROXY-KEY: ${theirs.key}`]);
    expect(origin.connections()).to.equal(2);
  });
});
