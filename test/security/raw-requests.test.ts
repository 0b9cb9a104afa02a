/**
 * What a hostile peer can write to the listener, byte by byte (attacks C-02 and C-14): each case
 * asserts the status, that the connection ends where the rest of it can no longer be trusted, and
 * that no request is found inside another one.
 */
import { expect } from 'chai';
import { CORS_HEADERS } from '../../shared/http/cors.ts';
import { LISTENER_OPTIONS } from '../../shared/http/listener.ts';
import { BODY_LIMITS } from '../../shared/http/slow-bodies.ts';
import { exchange, type RawAnswer, type RawExchange } from '../support/raw-http.ts';
import { head, StrictServer } from '../support/strict-server.ts';

/** What an attacker hopes is taken as a request of its own. */
const SMUGGLED = head('GET /smuggled HTTP/1.1');

describe('raw requests', () => {
  const strict = new StrictServer();
  before(() => strict.listen());
  after(() => strict.stop());
  beforeEach(() => {
    strict.served.length = 0;
  });

  const statuses = ({ answers }: RawExchange) => answers.map(({ status }) => status);

  /** One refused answer, then the end, and nothing of what was sent has been served. */
  async function refusedAndClosed(bytes: string, status: number): Promise<RawAnswer> {
    const result = await exchange(strict.port, bytes);
    expect(statuses(result)).to.deep.equal([status]);
    expect(result.closed).to.equal(true);
    expect(strict.served).to.deep.equal([]);
    return result.answers[0] as RawAnswer;
  }

  describe('framing', () => {
    const post = (...lines: string[]) => head('POST /tokens HTTP/1.1', ...lines);
    const cases: Record<string, string> = {
      'Content-Length and Transfer-Encoding': `${post('Content-Length: 4', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      'Transfer-Encoding and Content-Length': `${post('Transfer-Encoding: chunked', 'Content-Length: 4')}0\r\n\r\n`,
      'two equal Content-Length': `${post('Content-Length: 4', 'Content-Length: 4')}abcd`,
      'two different Content-Length': `${post('Content-Length: 0', 'Content-Length: 4')}abcd`,
      'Content-Length 4, 4': `${post('Content-Length: 4, 4')}abcd`,
      'Content-Length +4': `${post('Content-Length: +4')}abcd`,
      'Content-Length 0x4': `${post('Content-Length: 0x4')}abcd`,
      'Content-Length 04': `${post('Content-Length: 04')}abcd`,
      'Content-Length of 23 digits': `${post(`Content-Length: ${'9'.repeat(23)}`)}abcd`,
      'Content-Length empty': `${post('Content-Length:')}abcd`,
      'Transfer-Encoding xchunked': `${post('Transfer-Encoding: xchunked')}0\r\n\r\n`,
      'Transfer-Encoding chunked, identity': `${post('Transfer-Encoding: chunked, identity')}0\r\n\r\n`,
      'Transfer-Encoding identity': `${post('Transfer-Encoding: identity')}0\r\n\r\n`,
      'Transfer-Encoding Chunked': `${post('Transfer-Encoding: Chunked')}0\r\n\r\n`,
      'Transfer-Encoding with a vertical tab': `${post('Transfer-Encoding: \vchunked')}0\r\n\r\n`,
      'a space before the colon': `${post('Transfer-Encoding : chunked')}0\r\n\r\n`,
      'two Transfer-Encoding': `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      'chunked in HTTP/1.0': `${head('POST /tokens HTTP/1.0', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      'a chunk size of 0x4': `${post('Transfer-Encoding: chunked')}0x4\r\nabcd\r\n0\r\n\r\n`,
      'a chunk size that overflows': `${post('Transfer-Encoding: chunked')}1${'0'.repeat(16)}\r\nabcd\r\n0\r\n\r\n`,
      'a chunk longer than its size': `${post('Transfer-Encoding: chunked')}2\r\nabcd\r\n0\r\n\r\n`,
      'a bare LF after the chunk size': `${post('Transfer-Encoding: chunked')}4\nabcd\r\n0\r\n\r\n`,
      'a LF inside a chunk extension': `${post('Transfer-Encoding: chunked')}4;a\nb\r\nabcd\r\n0\r\n\r\n`,
      'a chunk extension over 16 KiB': `${post('Transfer-Encoding: chunked')}4;${'x'.repeat(17_000)}\r\nabcd\r\n0\r\n\r\n`,
      'a Content-Length among the trailers': `${post('Transfer-Encoding: chunked')}0\r\nContent-Length: 4\r\n\r\n`,
      'a Connection that names Content-Length': `${post('Connection: content-length', 'Content-Length: 4')}abcd`,
      'a Connection that names the key': post('Connection: keep-alive, BT-API-KEY'),
    };
    for (const [name, bytes] of Object.entries(cases)) {
      it(`${name}: 400, closed, the next request is not read`, async () => {
        const { body } = await refusedAndClosed(bytes + SMUGGLED, 400);
        expect(JSON.parse(body)).to.include({ status: 400 });
      });
    }

    it('a Content-Length that is too small leaves a second request that is refused', async () => {
      const bytes = head('POST /tokens HTTP/1.1', 'Content-Length: 2');
      const result = await exchange(strict.port, `${bytes}{}x y`);
      expect(result.closed).to.equal(true);
      expect(strict.served).to.deep.equal(['POST /tokens {}']);
    });

    it('reads chunks with a short extension and drops trailers', async () => {
      const bytes = head('POST /tokens HTTP/1.1', 'Transfer-Encoding: chunked');
      const trailers = 'Host: evil\r\nAuthorization: x\r\nBT-API-KEY: other\r\n';
      const chunks = `2;a=b\r\n{}\r\n0\r\n${trailers}\r\n`;
      const result = await exchange(strict.port, bytes + chunks + head('GET /next HTTP/1.1'), 2);
      expect(statuses(result)).to.deep.equal([200, 200]);
      expect(strict.served).to.deep.equal(['POST /tokens {}', 'GET /next']);
    });
  });

  describe('request line and headers', () => {
    const cases: Record<string, string> = {
      'two Host headers': head('GET / HTTP/1.1', 'Host: other'),
      'no Host': 'GET / HTTP/1.1\r\nBT-API-KEY: good\r\n\r\n',
      'no Host in HTTP/1.0': 'GET / HTTP/1.0\r\nBT-API-KEY: good\r\n\r\n',
      'Host with a path': 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n',
      'Host with userinfo': 'GET / HTTP/1.1\r\nHost: a@b\r\n\r\n',
      'Host with a bad port': 'GET / HTTP/1.1\r\nHost: a:b\r\n\r\n',
      'HTTP/0.9': 'GET /\r\n\r\n',
      'HTTP/2.0': head('GET / HTTP/2.0'),
      'the HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      'an absolute target': head('GET http://evil.example/ HTTP/1.1'),
      'OPTIONS *': head('OPTIONS * HTTP/1.1'),
      'a folded header': head('GET / HTTP/1.1', 'X: a', ' b'),
      'a bare LF between headers': 'GET / HTTP/1.1\nHost: a\n\n',
      'a bare CR in a header': head('GET / HTTP/1.1', 'X: a\rb'),
      'NUL in a header': head('GET / HTTP/1.1', 'X: a\0b'),
      'NUL in the key': head('GET / HTTP/1.1', 'BT-TRACE-ID: a\0b'),
      'a space in the path': head('GET /a b HTTP/1.1'),
      'a tab in the path': head('GET /a\tb HTTP/1.1'),
      'latin1 in the path': head('GET /caf\u00e9 HTTP/1.1'),
      'a backslash in the path': head('GET /a\\b HTTP/1.1'),
      'a fragment': head('GET /a#b HTTP/1.1'),
      'a dot segment': head('GET /tokens/../applications HTTP/1.1'),
      'an encoded dot segment': head('GET /tokens/%2e%2E/x HTTP/1.1'),
      'an encoded slash': head('GET /tokens/a%2Fb HTTP/1.1'),
      'an encoded NUL': head('GET /tokens/a%00 HTTP/1.1'),
      'latin1 in a header': head('GET / HTTP/1.1', 'X: caf\u00e9'),
      'UTF-8 in a header': head('GET / HTTP/1.1', 'X: \u00e2\u0082\u00ac'),
      'two keys': head('GET / HTTP/1.1', 'bt-api-key: good'),
      'an h2c upgrade': head('GET / HTTP/1.1', 'Connection: Upgrade', 'Upgrade: h2c'),
      'a websocket': head('GET / HTTP/1.1', 'Connection: Upgrade', 'Upgrade: websocket'),
    };
    for (const [name, bytes] of Object.entries(cases)) {
      it(`${name}: 400 and closed`, async () => {
        await refusedAndClosed(bytes + SMUGGLED, 400);
      });
    }

    it('a URL over 8 KiB: 414; over the header limit: 431', async () => {
      await refusedAndClosed(head(`GET /${'a'.repeat(9_000)} HTTP/1.1`), 414);
      await refusedAndClosed(head(`GET /${'a'.repeat(100_000)} HTTP/1.1`), 431);
    });

    it('17 KB of headers and 1,900 headers: 431', async () => {
      await refusedAndClosed(head('GET / HTTP/1.1', `X: ${'a'.repeat(17_000)}`), 431);
      await refusedAndClosed(head('GET / HTTP/1.1', ...new Array(1_900).fill('a: b')), 431);
    });

    it('a client that goes on sending still reads its answer', async () => {
      await refusedAndClosed(head('GET / HTTP/1.1', `X: ${'a'.repeat(4 * 1024 * 1024)}`), 431);
    });

    it('headers behind the count at which the parser would drop them: 431, not served', async () => {
      await refusedAndClosed(head('GET / HTTP/1.1', ...new Array(2_500).fill('a:')), 431);
    });

    it('101 headers: 431', async () => {
      await refusedAndClosed(head('GET / HTTP/1.1', ...new Array(99).fill('a: b')), 431);
    });

    it('an unknown method and TRACE: 405 with Allow, and no echo', async () => {
      const unknown = await refusedAndClosed(head('GeT /secret HTTP/1.1'), 405);
      expect(unknown.headers.allow).to.include('PATCH');
      expect(unknown.body).to.not.include('secret');
      const trace = await exchange(strict.port, head('TRACE /secret HTTP/1.1'), 1);
      expect(statuses(trace)).to.deep.equal([405]);
      expect(trace.answers[0]?.body).to.not.include('good');
    });

    it('CONNECT: closed without a byte', async () => {
      const result = await exchange(strict.port, head('CONNECT 127.0.0.1:22 HTTP/1.1'));
      expect(result).to.deep.equal({ answers: [], closed: true });
    });

    it('// is 404 and the connection stays usable', async () => {
      const bytes = head('GET //tokens HTTP/1.1') + head('GET /tokens/ HTTP/1.1');
      const result = await exchange(strict.port, bytes, 2);
      expect(statuses(result)).to.deep.equal([404, 200]);
      expect(strict.served).to.deep.equal(['GET /tokens']);
    });

    it('OPTIONS on any path: 204 with the CORS headers, without a key', async () => {
      const result = await exchange(strict.port, 'OPTIONS /tokens HTTP/1.1\r\nHost: a\r\n\r\n', 1);
      expect(statuses(result)).to.deep.equal([204]);
      expect(result.answers[0]?.headers).to.include({ 'access-control-allow-origin': '*' });
    });
  });

  describe('Expect', () => {
    const expecting = (key: string, expectation: string) =>
      `POST / HTTP/1.1\r\nHost: a\r\nBT-API-KEY: ${key}\r\nContent-Length: 2\r\nExpect: ${expectation}\r\n\r\n`;

    it('100 is sent after authentication, then the body is read', async () => {
      const result = await exchange(strict.port, expecting('good', '100-continue'), 2, (answer) =>
        answer.status === 100 ? '{}' : undefined,
      );
      expect(statuses(result)).to.deep.equal([100, 200]);
      expect(strict.served).to.deep.equal(['POST / {}']);
    });

    it('an unknown key gets 401 without a 100, and the connection ends', async () => {
      const result = await exchange(strict.port, expecting('bad', '100-continue'));
      expect(statuses(result)).to.deep.equal([401]);
    });

    for (const expectation of ['200-ok', 'foo 100-continue', '100-continue, 200-ok']) {
      it(`${expectation}: 417 and closed`, async () => {
        await refusedAndClosed(expecting('good', expectation), 417);
      });
    }
  });

  describe('several requests on one connection', () => {
    it('each is authenticated by its own key', async () => {
      const other = 'GET /b HTTP/1.1\r\nHost: a\r\nBT-API-KEY: other\r\n\r\n';
      const none = 'GET /c HTTP/1.1\r\nHost: a\r\n\r\n';
      const result = await exchange(strict.port, head('GET /a HTTP/1.1') + other + none, 3);
      expect(statuses(result)).to.deep.equal([200, 401, 401]);
      expect(strict.served).to.deep.equal(['GET /a']);
    });

    it('a broken one does not answer in the place of the one before it', async () => {
      const good = `${head('POST /a HTTP/1.1', 'Content-Length: 2')}{}`;
      const result = await exchange(strict.port, `${good}GeT / HTTP/1.1\r\n\r\n`);
      expect(statuses(result)).to.deep.equal([200]);
      expect(result.answers[0]?.headers.connection).to.equal('close');
      expect(result.closed).to.equal(true);
      expect(strict.served).to.deep.equal(['POST /a {}']);
    });

    it('a body that breaks after its answer gets no second answer', async () => {
      const bytes = 'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
      const result = await exchange(strict.port, bytes, 2, () => 'broken\r\n');
      expect(statuses(result)).to.deep.equal([401]);
      expect(result.closed).to.equal(true);
    });

    it('a body that looks like a request stays a body', async () => {
      const bytes = head('POST /a HTTP/1.1', `Content-Length: ${SMUGGLED.length}`) + SMUGGLED;
      const result = await exchange(strict.port, bytes, 1);
      expect(statuses(result)).to.deep.equal([200]);
      expect(strict.served).to.deep.equal([`POST /a ${SMUGGLED}`.trim()]);
    });

    it('a body over the limit: 413 and closed', async () => {
      const body = 'x'.repeat(2_000);
      await refusedAndClosed(head('POST /a HTTP/1.1', 'Content-Length: 2000') + body, 413);
    });
  });

  it('answers of the parser are problem details with a trace id, open to browsers', async () => {
    const { headers, body } = await refusedAndClosed('secret-4242424242424242\r\n\r\n', 400);
    expect(headers['content-type']).to.equal('application/problem+json');
    expect(headers['bt-trace-id']).to.match(/^[0-9a-f-]{36}$/);
    expect(headers['cache-control']).to.equal('no-store');
    expect(headers[CORS_HEADERS[0] as string]).to.equal(CORS_HEADERS[1]);
    expect(JSON.parse(body)).to.have.keys('title', 'status', 'detail');
    expect(body).to.not.include('4242');
  });

  describe('slow clients', () => {
    const slow = new StrictServer(
      { ...LISTENER_OPTIONS, headersTimeout: 100, connectionsCheckingInterval: 20 },
      { ...BODY_LIMITS, wholeMs: 200, checkEachMs: 20 },
    );
    before(() => slow.listen());
    after(() => slow.stop());

    for (const [name, bytes] of [
      ['headers that never end', 'GET / HTTP/1.1\r\nHost: a\r\n'],
      [
        'a body that is shorter than announced',
        `${head('POST / HTTP/1.1', 'Content-Length: 9')}{}`,
      ],
    ] as const) {
      it(`${name}: 408 and closed`, async () => {
        const result = await exchange(slow.port, bytes);
        expect(statuses(result)).to.deep.equal([408]);
        expect(result.closed).to.equal(true);
        expect(slow.served).to.deep.equal([]);
      });
    }
  });
});
