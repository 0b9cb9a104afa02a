import { expect } from 'chai';
import fc from 'fast-check';
import { ApiError } from '../../../shared/errors.ts';
import { checkRequest, HEADERS_MAX } from '../../../shared/http/strict-request.ts';

const HOST = ['Host', 'localhost:3000'];

const check = (...headers: string[]) => checkRequest('POST', '/tokens', '1.1', headers);

describe('checkRequest', () => {
  it('collects what the routes need in one pass', () => {
    const view = checkRequest('POST', '/tokens/?a=b', '1.1', [
      ...HOST,
      'bt-api-key',
      'key_1',
      'Content-Type',
      'application/json',
      'Content-Encoding',
      'gzip',
      'Content-Length',
      '12',
      'BT-TRACE-ID',
      'trace-1',
      'BT-IDEMPOTENCY-KEY',
      'once',
      'BT-TRANSACTION-ID',
      'tx',
      'Expect',
      '100-Continue',
    ]);
    expect(view).to.deep.include({
      ok: true,
      method: 'POST',
      path: '/tokens',
      query: 'a=b',
      host: 'localhost:3000',
      apiKey: 'key_1',
      contentType: 'application/json',
      contentEncoding: 'gzip',
      contentLength: 12,
      chunked: false,
      traceId: 'trace-1',
      idempotencyKey: 'once',
      transactionId: 'tx',
      expectsContinue: true,
    });
  });

  it('takes no key from anywhere but BT-API-KEY', () => {
    const view = checkRequest('GET', '/tokens?bt-api-key=k&api_key=k', '1.1', [
      ...HOST,
      'Authorization',
      'Bearer k',
      'Cookie',
      'bt-api-key=k',
      'X-API-KEY',
      'k',
    ]);
    expect(view).to.include({ ok: true, apiKey: undefined });
  });

  it('ignores X-HTTP-Method-Override', () => {
    expect(check(...HOST, 'X-HTTP-Method-Override', 'DELETE')).to.include({
      ok: true,
      method: 'POST',
    });
  });

  describe('trace id', () => {
    const traceOf = (value: string) => check(...HOST, 'BT-TRACE-ID', value).traceId;

    it('is the callers when it is 1 to 64 safe characters', () => {
      const longest = 'a'.repeat(64);
      expect(traceOf(longest)).to.equal(longest);
      expect(traceOf('00-4bf92f35-00f067aa-01')).to.equal('00-4bf92f35-00f067aa-01');
    });

    for (const value of ['', 'a'.repeat(65), 'a b', '<x>', '"', 'a;b', 'a\tb', '{}', '%0d%0a']) {
      it(`is a new UUID instead of ${JSON.stringify(value.slice(0, 10))}`, () => {
        expect(traceOf(value)).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      });
    }

    it('is told with a refusal too, also when the fault precedes it', () => {
      const refused = check('Host', 'a/b', 'BT-TRACE-ID', 'mine');
      expect(refused).to.include({ ok: false, traceId: 'mine' });
    });
  });

  describe('refuses with 400 and close', () => {
    const cases: Record<string, string[]> = {
      'no Host': [],
      'an empty Host': ['Host', ''],
      'two Host headers': [...HOST, ...HOST],
      'a Host with a path': ['Host', 'localhost/tokens'],
      'a Host with userinfo': ['Host', 'a@localhost'],
      'a Host with a bad port': ['Host', 'localhost:99999'],
      'Content-Length and Transfer-Encoding': [
        ...HOST,
        'Content-Length',
        '4',
        'Transfer-Encoding',
        'chunked',
      ],
      'two Content-Length': [...HOST, 'Content-Length', '4', 'Content-Length', '4'],
      'Content-Length +4': [...HOST, 'Content-Length', '+4'],
      'Transfer-Encoding xchunked': [...HOST, 'Transfer-Encoding', 'xchunked'],
      'Transfer-Encoding chunked, identity': [...HOST, 'Transfer-Encoding', 'chunked, identity'],
      'Transfer-Encoding in another case': [...HOST, 'Transfer-Encoding', 'Chunked'],
      'two Transfer-Encoding': [
        ...HOST,
        'Transfer-Encoding',
        'chunked',
        'Transfer-Encoding',
        'chunked',
      ],
      'Connection that names the framing': [...HOST, 'Connection', 'close, content-length'],
      'Connection that names the key': [...HOST, 'Connection', 'BT-API-KEY'],
      'an upgrade': [...HOST, 'Upgrade', 'h2c'],
      'latin1 in a header': [...HOST, 'X', 'caf\u00e9'],
      'a control byte in a header': [...HOST, 'X', 'a\u0001'],
      'two BT-API-KEY': [...HOST, 'BT-API-KEY', 'a', 'bt-api-key', 'a'],
      'two BT-IDEMPOTENCY-KEY': [...HOST, 'BT-IDEMPOTENCY-KEY', 'a', 'BT-IDEMPOTENCY-KEY', 'b'],
      'two BT-TRANSACTION-ID': [...HOST, 'BT-TRANSACTION-ID', 'a', 'BT-TRANSACTION-ID', 'b'],
      'two BT-TRACE-ID': [...HOST, 'BT-TRACE-ID', 'a', 'BT-TRACE-ID', 'b'],
      'two Content-Type': [...HOST, 'Content-Type', 'a/b', 'Content-Type', 'a/b'],
      'two Content-Encoding': [...HOST, 'Content-Encoding', 'gzip', 'Content-Encoding', 'gzip'],
      'two Expect': [...HOST, 'Expect', '100-continue', 'Expect', '100-continue'],
    };
    for (const [name, headers] of Object.entries(cases)) {
      it(name, () => {
        expect(check(...headers)).to.include({ ok: false, code: 'bad_request', close: true });
      });
    }

    for (const version of ['0.9', '2.0', '1.2', '']) {
      it(`HTTP version ${version}`, () => {
        const refused = checkRequest('GET', '/', version, HOST);
        expect(refused).to.include({ ok: false, code: 'bad_request', close: true });
      });
    }

    it('chunked in HTTP/1.0', () => {
      const refused = checkRequest('POST', '/', '1.0', [...HOST, 'Transfer-Encoding', 'chunked']);
      expect(refused).to.include({ ok: false, code: 'bad_request', close: true });
    });
  });

  it('answers 431 over 100 headers', () => {
    const filler = (count: number) => Array.from({ length: count }, () => ['a', 'b']).flat();
    expect(check(...HOST, ...filler(HEADERS_MAX - 1)).ok).to.equal(true);
    expect(check(...HOST, ...filler(HEADERS_MAX))).to.include({
      code: 'headers_too_large',
      close: true,
    });
  });

  it('answers 417 to an expectation other than 100-continue', () => {
    for (const value of ['200-ok', 'x; 100-continue', '100-continue, x', '']) {
      expect(check(...HOST, 'Expect', value)).to.include({ code: 'expectation_failed' });
    }
  });

  it('does not promise 100 to HTTP/1.0', () => {
    const view = checkRequest('POST', '/', '1.0', [...HOST, 'Expect', '100-continue']);
    expect(view).to.include({ ok: true, expectsContinue: false });
  });

  it('answers 405 to methods that this API does not have', () => {
    for (const method of ['TRACE', 'CONNECT', 'PROPFIND', 'QUERY', 'get', '__proto__', '']) {
      expect(checkRequest(method, '/tokens', '1.1', HOST)).to.include({
        code: 'method_not_allowed',
      });
    }
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      expect(checkRequest(method, '/tokens', '1.1', HOST).ok).to.equal(true);
    }
  });

  const NAMES = [
    'Host',
    'host',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Expect',
    'Upgrade',
    'BT-API-KEY',
    'bt-trace-id',
    'Content-Type',
    '__proto__',
    'constructor',
  ];
  const VALUES = [
    'localhost',
    'a@b',
    '4',
    '4, 4',
    'chunked',
    'gzip, chunked',
    'close',
    'host',
    'bt-api-key',
    '100-continue',
    'h2c',
    '\u00e9',
    '\r\nX: y',
    '\0',
  ];
  const header = fc.tuple(
    fc.oneof(fc.constantFrom(...NAMES), fc.string({ maxLength: 20 })),
    fc.oneof(fc.constantFrom(...VALUES), fc.string({ unit: 'binary', maxLength: 40 })),
  );

  it('never throws, and what it accepts has one reading (property)', () => {
    fc.assert(
      fc.property(
        fc.array(header, { maxLength: 8 }),
        fc.oneof(fc.constant('/tokens'), fc.string({ unit: 'binary', maxLength: 60 })),
        fc.constantFrom('1.1', '1.0', '0.9'),
        (headers, url, version) => {
          const result = checkRequest('POST', url, version, [...HOST, ...headers.flat()]);
          if (!result.ok) {
            const { status } = new ApiError(result.code, result.detail);
            expect(status).to.be.within(400, 431);
            return;
          }
          const count = (name: string) =>
            headers.filter(([given]) => given.toLowerCase() === name).length;
          expect(count('host')).to.equal(0);
          expect(count('upgrade')).to.equal(0);
          expect(count('content-length') + count('transfer-encoding')).to.be.at.most(1);
          expect(count('bt-api-key')).to.be.at.most(1);
          expect(headers.every(([, value]) => /^[\t\x20-\x7e]*$/.test(value))).to.equal(true);
          expect(result.path).to.match(/^\/[!-~]*$/);
          expect(result.path).to.not.match(/\/\/|\\|#|\?|\/\.{1,2}(\/|$)/);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('reads each spelling of a path in one way only (property)', () => {
    const piece = fc.constantFrom('/', '.', '..', '%2e', '%2F', '%5c', '%00', 'a', '%41', '?', '#');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
        const url = `/${pieces.join('')}`;
        const result = checkRequest('GET', url, '1.1', HOST);
        if (!result.ok) return;
        // WHATWG resolves dot segments and backslashes; an accepted path leaves it nothing to do.
        const { pathname, search } = new URL(`http://localhost${url}`);
        expect(pathname === '/' ? '/' : pathname.replace(/\/$/, '')).to.equal(result.path);
        expect(search.slice(1)).to.equal(result.query);
      }),
      { numRuns: 1000 },
    );
  });
});
