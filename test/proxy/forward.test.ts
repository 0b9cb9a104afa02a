/** Forwarding over raw sockets: what a destination gets is what the caller sent. */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { useForwarding } from './forwarding.ts';
import { OK } from './origin.ts';
import { parseAnswer, type RawAnswer, request, sendRaw, valuesOf } from './raw-client.ts';

describe('forwarding', () => {
  const forwarding = useForwarding();
  const { behind, send } = forwarding;

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
        ...['Proxy-Foo: value'],
        ...['Proxy-Connection: keep-alive', 'X-Gone: 1', "X'Odd: 1", 'X.Dot: 1', 'X_Ok: 1'],
        ...[
          'Content_Length: 1',
          'Transfer_Encoding: chunked',
          'BT_API_KEY: 1',
          'Proxy_Authorization: 1',
        ],
      ];
      const bytes = request('GET /proxy/x', [...lines, ...dropped, 'Connection: close, x-gone']);
      await sendRaw(forwarding.proxies.port, bytes);
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

    it('does not pass on a Referer that names the key', async () => {
      const { origin, lines, proxyKey } = await behind();
      const page = 'https://vault.example/proxy?';
      await send('GET /proxy', [...lines, `Referer: ${page}a=1&bt%2Dproxy-key=${proxyKey}`]);
      await send('GET /proxy', [...lines, `Referer: ${page}a=bt-proxy-key`]);
      const referers = origin.received.flatMap((one) => valuesOf(one, 'referer'));
      expect(referers).to.deep.equal([`${page}a=bt-proxy-key`]);
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
      const id = await forwarding.proxies.token('secret-value');
      const bytes = gzipSync(`{"a":"{{ ${id} }}"}`).toString('latin1');
      const coded = ['Content-Type: application/json', 'Content-Encoding: gzip'];
      await send('POST /proxy', [...lines, ...coded, `Content-Length: ${bytes.length}`], bytes);
      expect(origin.received[0]?.body).to.equal('{"a":"secret-value"}');
      expect(origin.received[0]?.headers.join()).to.not.match(/content-encoding/i);
    });

    it('asks for a body with 100 only when the caller may send it', async () => {
      const { origin, lines } = await behind();
      const waits = ['Content-Length: 3', 'Expect: 100-continue', 'Connection: close'];
      const refused = await sendRaw(forwarding.proxies.port, request('POST /proxy', waits));
      expect(parseAnswer(refused.text).status).to.equal(400);
      const bytes = request('POST /proxy', [...lines, ...waits], 'abc');
      const { text } = await sendRaw(forwarding.proxies.port, bytes);
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

  it('serves pipelined requests of one connection in order, each by its own keys', async () => {
    const first = await behind('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none');
    const second = await behind('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo');
    const [apiKey = ''] = second.lines;
    const bytes =
      request('GET /proxy', first.lines) +
      request('GET /proxy', [apiKey, 'BT-PROXY-KEY: 1111111111111111111111']) +
      request('GET /proxy', [...second.lines, 'Connection: close']);
    const { text } = await sendRaw(forwarding.proxies.port, bytes);
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal([
      ...['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 200'],
    ]);
    expect(text.indexOf('one')).to.be.lessThan(text.indexOf('two'));
  });

  it('asks the database once: for the version alone, or along with the tokens', async () => {
    const { lines } = await behind();
    const id = await forwarding.proxies.token('value');
    const json = 'Content-Type: application/json';
    const post = (body: string): Promise<RawAnswer> =>
      send('POST /proxy', [...lines, json, `Content-Length: ${body.length}`], body);
    const reads = (): Promise<number> => forwarding.proxies.metric('sallyport_gate_reads_total');
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
    const other = await forwarding.proxies.control.addTenant('Other');
    const rules = [{ priority: 1, container: '/', transform: 'mask', permissions: ['token:use'] }];
    const { key } = await forwarding.proxies.application({ rules }, other);
    const theirs = await forwarding.proxies.proxy({ destination_url: origin.url }, other);
    await send('GET /proxy', [`BT-API-KEY: ${key}`, `BT-PROXY-KEY: ${theirs.key}`]);
    expect(origin.connections()).to.equal(2);
  });
});
