/** What the gateway accepts as a fetch of a script, and what it makes of a redirect. */
import { expect } from 'chai';
import { assert as always, array, property, string, tuple } from 'fast-check';
import { nextRequest } from '../../../shared/sandbox/script-fetch-redirect.ts';
import {
  type FetchRequest,
  readFetchRequest,
} from '../../../shared/sandbox/script-fetch-request.ts';
import { messageOf } from './fetch-asking.ts';

function read(changes: object): FetchRequest {
  return readFetchRequest(messageOf(Object.assign({ url: 'https://example.com/a?b=c' }, changes)));
}

describe('a fetch request of a script', () => {
  it('is a URL, a method, headers in their spelling, and bytes', () => {
    const headers = [
      ['X-One', ' a '],
      ['x-one', 'b\u00e4'],
    ];
    const request = read({ method: 'post', headers, text: 'h\u00e4', redirect: 'manual' });
    expect(request.url.href).to.equal('https://example.com/a?b=c');
    expect(request).to.include({ method: 'POST', redirect: 'manual', decode: true });
    expect(request.headers).to.deep.equal([
      ['X-One', 'a'],
      ['x-one', 'b\u00e4'],
    ]);
    expect(request.body?.toString('hex')).to.equal('68c3a4');
    expect(read({ method: 'PUT', base64: 'AP8=' }).body?.toString('hex')).to.equal('00ff');
    expect(read({}).body).to.equal(undefined);
  });

  for (const text of ['', 'x', 'null', '[]', '7', '{}', '{"__proto__":{"redirect":"follow"}}']) {
    it(`is not ${text === '' ? 'nothing' : text}`, () => {
      expect(() => readFetchRequest(text)).to.throw('could not be read');
    });
  }

  for (const url of [
    ...['', '/a', '//example.com/', 'example.com', 'https://', 'https:///', 'https://a b/'],
    ...['file:///etc/passwd', 'ftp://example.com/', 'data:text/plain,x', 'javascript:0'],
    ...['gopher://example.com/', 'unix:/run/x', 'https://user@example.com/'],
    ...['https://user:pass@example.com/', 'https://:p@example.com/', 'https://[::1/', 7, null, {}],
    `https://example.com/${'a'.repeat(17_000)}`,
  ]) {
    it(`has no URL like ${String(url).slice(0, 40)}`, () => {
      expect(() => read({ url }))
        .to.throw('The URL must be')
        .with.property('code', 'ERR_INVALID_URL');
    });
  }

  for (const method of [
    '',
    'CONNECT',
    'connect',
    'TRACE',
    'TRACK',
    'GET /',
    'A\r\nB',
    'GÉT',
    7,
    null,
  ]) {
    it(`has no method ${JSON.stringify(method)}`, () => {
      expect(() => read({ method })).to.throw('The method is not allowed');
    });
  }

  for (const [name, value] of [
    ...[
      ['', 'a'],
      ['a b', 'a'],
      ['a:', 'a'],
      ['a\r\nb', 'a'],
      ['é', 'a'],
      [7, 'a'],
      [null, 'a'],
    ],
    ...[
      ['a', 'a\r\nEvil: 1'],
      ['a', 'a\nb'],
      ['a', 'a\rb'],
      ['a', '\0'],
      ['a', '\u0100'],
      ['a', 7],
    ],
    ...[['a', '\u560d\u560a'], ['a', '\x7f'], ['a'], []],
  ]) {
    it(`has no header ${JSON.stringify([name, value])}`, () => {
      const wrong = /^The (?:name|value) of a header/;
      expect(() => read({ headers: [[name, value]] })).to.throw(wrong);
      expect(() => read({ headers: [[name, value]] })).not.to.throw(/Evil/);
    });
  }

  it('does not say where it goes or where it ends: such headers are dropped', () => {
    const names = [
      ...['Host', 'hOST', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Keep-Alive', 'TE'],
      ...[
        'Trailer',
        'Upgrade',
        'Expect',
        'Proxy-Connection',
        'Proxy-Authorization',
        'HTTP2-Settings',
      ],
      ...['Proxy-Authenticate', 'BT-API-KEY', 'bt-proxy-key', 'Bt-Trace-Id'],
    ];
    const headers = [...names.map((name) => [name, '1']), ['Authorization', 'Bearer x']];
    expect(read({ headers }).headers).to.deep.equal([['Authorization', 'Bearer x']]);
  });

  it('is bounded in headers and body', () => {
    const large = [['a', 'b'.repeat(33_000)]];
    expect(() => read({ headers: large })).to.throw('headers of the request are too large');
    const many = Array.from({ length: 201 }, (_, at) => [`a${at}`, '']);
    expect(() => read({ headers: many })).to.throw('headers of the request are too large');
    const text = 'ä'.repeat(5 * 512 * 1024);
    expect(read({ method: 'POST', text }).body).to.have.length(5 * 1024 * 1024);
    expect(() => read({ method: 'POST', text: `${text}a` })).to.throw('larger than 5 MiB');
    expect(() => read({ method: 'HEAD', text: 'a' })).to.throw('cannot have a body');
    const coded =
      '{"url":"https://e.com","method":"PUT","headers":[],"redirect":"follow","body":"hex"}';
    expect(() => readFetchRequest(`${coded}\n00`)).to.throw('could not be read');
  });

  it('is refused unread when its head is larger than any honest one', () => {
    for (const unit of ['[', '{"a":', '[],', '"', ' ']) {
      const hostile = unit.repeat(2 * 1024 * 1024);
      expect(() => readFetchRequest(hostile)).to.throw('headers of the request are too large');
      expect(() => readFetchRequest(`${hostile}\nbody`)).to.throw('are too large');
    }
    expect(read({ method: 'POST', text: `[${'\n'.repeat(70_000)}` }).body).to.have.length(70_001);
  });

  it('never lets a line break or a framing header through, whatever the pairs are', () => {
    const pairs = array(tuple(string({ unit: 'binary' }), string({ unit: 'binary' })));
    always(
      property(pairs, (headers) => {
        let accepted: FetchRequest['headers'] = [];
        try {
          accepted = read({ headers }).headers;
        } catch {
          return;
        }
        for (const [name, value] of accepted) {
          expect(name).to.match(/^[!-~]+$/);
          expect(value).not.to.match(/[\0\r\n]/);
        }
      }),
    );
  });
});

describe('a redirect of a fetch', () => {
  const follow = (changes: object, status: number, location?: string) =>
    nextRequest(read(changes), status, location);
  const POST = { method: 'POST', text: 'card', headers: [['Content-Type', 'text/plain']] };
  const SECRETS = [
    ...[
      ['Authorization', 'a'],
      ['Cookie', 'b'],
      ['X-Api-Key', 'c'],
      ['Idempotency-Key', 'd'],
    ],
    ['Accept', '*/*'],
  ];

  it('is an answer like others in manual mode, without a location, and for other statuses', () => {
    expect(follow({ redirect: 'manual' }, 302, '/x')).to.equal(undefined);
    expect(follow({}, 302)).to.equal(undefined);
    for (const status of [200, 300, 304, 305, 306, 309, 400]) {
      expect(follow({}, status, '/x'), String(status)).to.equal(undefined);
    }
  });

  it('is an error in error mode', () => {
    expect(() => follow({ redirect: 'error' }, 302, '/x')).to.throw('answered with a redirect');
  });

  it('keeps everything within the origin', () => {
    const next = follow({ headers: SECRETS }, 302, '../x?y#z');
    expect(next?.url.href).to.equal('https://example.com/x?y');
    expect(next?.headers).to.deep.equal(SECRETS);
    const again = follow(POST, 307, 'https://EXAMPLE.com:443/x');
    expect(again).to.deep.include({ method: 'POST', body: Buffer.from('card') });
  });

  for (const location of [
    ...['https://other.com/', '//other.com', 'https://example.com:444/', 'https://a.example.com/'],
    ...['https://example.com.other.com/', '\\\\other.com'],
  ]) {
    it(`shows ${location} nothing that could be a secret`, () => {
      const next = follow({ headers: SECRETS }, 302, location);
      expect(next?.url.origin).not.to.equal('https://example.com');
      expect(next?.headers).to.deep.equal([['Accept', '*/*']]);
      expect(() => follow(POST, 307, location)).to.throw('to another origin');
      expect(() => follow({ ...POST, method: 'PUT' }, 302, location)).to.throw('to another origin');
    });
  }

  it('turns POST into GET without its body, as browsers do', () => {
    for (const status of [301, 302, 303]) {
      const next = follow(POST, status, '/x');
      expect(next).to.deep.include({ method: 'GET', body: undefined, headers: [] });
    }
    expect(follow({ ...POST, method: 'PUT' }, 302, '/x')).to.include({ method: 'PUT' });
    expect(follow({ ...POST, method: 'PUT' }, 303, '/x')).to.include({ method: 'GET' });
    expect(follow({ method: 'HEAD' }, 303, '/x')).to.include({ method: 'HEAD' });
  });

  it('never leads from https to http', () => {
    for (const location of ['http://example.com/', 'http://127.0.0.1/', 'http://other.com']) {
      expect(() => follow({}, 302, location)).to.throw('from https to http');
    }
    const plain = { url: 'http://127.0.0.1/' };
    expect(follow(plain, 302, 'http://127.0.0.1:81/')?.url.href).to.equal('http://127.0.0.1:81/');
  });

  for (const location of [
    ...['file:///etc/passwd', 'ftp://example.com', 'data:,x', 'https://u:p@example.com/'],
    ...['https://[::', 'gopher://127.0.0.1:6379/_FLUSHALL', 'javascript:0'],
  ]) {
    it(`never leads to ${location}`, () => {
      expect(() => follow({}, 302, location)).to.throw('does not lead to a valid https URL');
    });
  }
});
