/** Forwarding over raw sockets, the way back: what a caller gets is what the destination sent. */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { useForwarding } from './forwarding.ts';
import { parseAnswer, request, sendRaw, valuesOf } from './raw-client.ts';

describe('forwarding of answers', () => {
  const forwarding = useForwarding();
  const { behind, send } = forwarding;

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

  it('goes on with the connection after an answer that ends with its head', async () => {
    for (const [method, head] of [
      ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
      ['GET', 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'],
      ['HEAD', 'HTTP/1.1 200 OK\r\nX: 1\r\n\r\n'],
    ] as const) {
      const { lines } = await behind(head);
      const both = request(`${method} /proxy`, lines) + request('GET /none', ['Connection: close']);
      const { text } = await sendRaw(forwarding.proxies.port, both);
      const statuses = Array.from(text.matchAll(/HTTP\/1\.1 (\d{3})/g), ([, status]) => status);
      expect(statuses, head).to.deep.equal([head.slice(9, 12), '404']);
    }
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
    const { lines } = await behind((socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nuntil the end'));
    const { text, ending } = await sendRaw(forwarding.proxies.port, request('GET /proxy', lines));
    const answer = parseAnswer(text);
    expect([answer.status, answer.body, ending]).to.deep.equal([200, 'until the end', 'end']);
    expect(valuesOf(answer, 'connection')).to.deep.equal(['close']);
    expect(valuesOf(answer, 'transfer-encoding')).to.deep.equal([]);
  });

  const FRAMED = ['chunked', 'Chunked', 'gzip, chunked', 'gzip ,\tchunked', ',chunked'];
  const UNFRAMED = [
    ...['identity', 'gzip', 'xchunked', 'x chunked', 'chunked, identity', 'chunked,'],
    ...['chunked;q=1', '\xa0chunked', 'chunked\r\nTransfer-Encoding: identity'],
  ];
  for (const more of [[], ['BT-PROXY-CONNECTION: keep-alive']]) {
    const engine = more.length === 0 ? 'undici' : more[0];
    it(`ends a body in chunks only where its coding of the transfer ends so: ${engine}`, async () => {
      for (const coding of [...FRAMED, ...UNFRAMED]) {
        const { lines } = await behind((socket) => {
          const head = `HTTP/1.1 200 OK\r\nTransfer-Encoding: ${coding}\r\n\r\n`;
          socket.end(`${head}2\r\nok\r\n0\r\n\r\n`, 'latin1');
        });
        const bytes = request('GET /proxy', [...lines, ...more]);
        const isFramed = FRAMED.includes(coding);
        const whole = (text: string): boolean => isFramed && text.endsWith('0\r\n\r\n');
        const { text, ending } = await sendRaw(forwarding.proxies.port, bytes, whole);
        const answer = parseAnswer(text);
        const framing = isFramed ? 'open' : 'end';
        expect([answer.body, ending], coding).to.deep.equal(['2\r\nok\r\n0\r\n\r\n', framing]);
        expect(valuesOf(answer, 'transfer-encoding').length, coding).to.equal(isFramed ? 1 : 0);
        expect(valuesOf(answer, 'connection')).to.deep.equal([isFramed ? 'keep-alive' : 'close']);
      }
    });
  }
});
