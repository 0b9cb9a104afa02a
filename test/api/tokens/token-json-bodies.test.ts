import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect } from 'chai';
import { exchange } from '../../support/raw-http.ts';
import { expectProblem, type TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const MIB = 1024 * 1024;
const JSON_TYPE = { 'content-type': 'application/json' };

/** A creation of exactly this many bytes. */
function creationOf(bytes: number): string {
  const [head, tail] = ['{"type":"token","data":"', '"}'];
  return head + 'x'.repeat(bytes - head.length - tail.length) + tail;
}
const creation = (data: string): string => `{"type":"token","data":${data}}`;
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

describe('POST /tokens: the JSON of its body', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  /** The text of `data` as it is read back. */
  async function storedText(data: string): Promise<string | undefined> {
    const { status, body, text } = await tokens.createText(creation(data));
    expect(status, text).to.equal(201);
    const read = await tokens.read(body.id);
    return /"data":(.*),"containers"/s.exec(read.text)?.[1];
  }
  function send(
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = JSON_TYPE,
  ) {
    return tokens.send('POST /tokens', { body, headers });
  }

  describe('syntax', () => {
    const BROKEN: [string, string | Uint8Array<ArrayBuffer>][] = [
      ['an empty body', ''],
      ['an opening brace', '{'],
      ['a trailing comma', '{"type":"token","data":1,}'],
      ['single quotes', "{'type':'token','data':1}"],
      ['a comment', '{"type":"token",/* */"data":1}'],
      ['bytes behind the end', '{"type":"token","data":1} {}'],
      ['a byte order mark', '\uFEFF{"type":"token","data":1}'],
      ['bytes that are not UTF-8', Uint8Array.from(Buffer.from(creation('"\xff"'), 'latin1'))],
      ['an overlong encoding', Uint8Array.from(Buffer.from(creation('"\xc0\xaf"'), 'latin1'))],
      ['half of a surrogate pair', creation('"\\ud800"')],
      ['a member name given twice', '{"type":"card","type":"token","data":1}'],
      ['a member of data given twice', creation('{"a":1,"\\u0061":2}')],
      ['a control character in a text', creation('"a\tb"')],
      ['NaN', creation('NaN')],
      ['a leading zero', creation('01')],
    ];
    for (const [what, body] of BROKEN) {
      it(`refuses ${what}`, async () => expectProblem(await send(body), 400));
    }
    it('names the position and never the text', async () => {
      const answer = await send('{"type":"token",\n "data": s3cret}');
      expectProblem(answer, 400);
      expect(answer.text).to.contain('line 2, column 10').and.not.contain('s3cret');
    });
    for (const body of ['[]', '"text"', '7', 'null', 'true', '[{"type":"token","data":1}]']) {
      it(`refuses ${body} at the top`, async () => expectProblem(await send(body), 400, 'body'));
    }
  });

  describe('size', () => {
    it('refuses 65 levels of data and a million', async () => {
      expectProblem(await tokens.createText(creation(nested(65))), 400);
      expectProblem(await tokens.createText(creation('['.repeat(1_000_000))), 400);
      expectProblem(await tokens.createText(creation('{"a":'.repeat(100_000))), 400);
    });
    it('keeps 64 levels', async () => {
      expect(await storedText(nested(64))).to.equal(nested(64));
      const objects = `${'{"a":'.repeat(64)}1${'}'.repeat(64)}`;
      expect(await storedText(objects)).to.equal(objects);
    });
    it('refuses more than 10,000 members', async () => {
      const members = Array.from({ length: 60_000 }, (_, i) => `"k${i}":1`);
      expectProblem(await tokens.createText(creation(`{${members.join()}}`)), 400);
    });
    it('accepts a body of 1 MiB and refuses one byte more', async () => {
      const { status, body } = await send(creationOf(MIB));
      expect(status).to.equal(201);
      const read = await tokens.read(body.id);
      expect((read.body.data as string).length).to.be.greaterThan(MIB - 100);
      expectProblem(await send(creationOf(MIB + 1)), 413);
    });
    it('refuses bombs of every compression, and compression it does not know', async () => {
      const zeros = Buffer.from(creationOf(100 * MIB));
      const small = gzipSync(zeros, { level: 1 });
      for (const [encoding, body, status] of [
        ['gzip', small, 413],
        ['br', brotliCompressSync(Buffer.alloc(2 * MIB, 'x')), 413],
        ['zstd', zstdCompressSync(zeros), 413],
        ['gzip, gzip', gzipSync(small), 415],
        ['lzma', small, 415],
      ] as const) {
        const headers = { ...JSON_TYPE, 'content-encoding': encoding };
        expectProblem(await send(Uint8Array.from(body), headers), status);
      }
    });
    it('reads a compressed body', async () => {
      const body = Uint8Array.from(gzipSync(creation('"packed"')));
      const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' };
      expect((await send(body, headers)).status).to.equal(201);
    });
    it('refuses a Content-Length that is smaller than the body', async () => {
      const body = creation('1');
      const port = Number(new URL(vault.url).port);
      const head = [
        ...['POST /tokens HTTP/1.1', 'Host: localhost', `BT-API-KEY: ${vault.key}`],
        ...['Content-Type: application/json', `Content-Length: ${body.length - 1}`, '', ''],
      ];
      const { answers } = await exchange(port, head.join('\r\n') + body, 1);
      expect(answers[0]?.status).to.equal(400);
    });
  });

  describe('media type', () => {
    const TYPES: [string, number][] = [
      ['application/json', 201],
      ['application/json; charset=utf8', 201],
      ['application/json;charset=UTF-8', 201],
      ['APPLICATION/JSON', 201],
      ['text/plain', 415],
      ['application/vnd.api+json', 415],
      ['application/json; charset=utf-16', 415],
      ['application/json; charset=utf-7', 415],
      ['application/json; charset=latin1', 415],
      ['application/merge-patch+json', 415],
      ['application/x-www-form-urlencoded', 415],
      ['application/json, text/plain', 415],
    ];
    for (const [type, status] of TYPES) {
      it(`answers ${status} to ${type}`, async () => {
        const answer = await send(creation('1'), { 'content-type': type });
        expect(answer.status).to.equal(status);
      });
    }
    it('answers 415 to a body without one', async () => {
      expectProblem(await send(Uint8Array.from(Buffer.from(creation('1'))), {}), 415);
    });
  });

  describe('data', () => {
    it('is required and not null', async () => {
      expectProblem(await tokens.createText('{"type":"token"}'), 400, 'data');
      expectProblem(await tokens.createText(creation('null')), 400, 'data');
    });
    const KEPT = [
      ...['""', '0', 'false', '[]', '{}', 'true', '-0', '[0,-0,null]', '1.5', '" "'],
      ...['{"constructor":1,"toString":"x","hasOwnProperty":null,"then":"y"}', '"\\u0000"'],
      ...['{"__proto__":{"a":1},"b":{"__proto__":null}}', '{"then":{"then":true}}', '"\\u2028"'],
      ...['9007199254740991', '0.1', '123456789.123456', '"🔑 ключ"', '{"":{"":""}}', '1e+21'],
      ...['"{{ data }}"', '{"toJSON":"x","valueOf":1,"length":5}', '[null,[null]]', '5e-324'],
    ];
    for (const text of KEPT) {
      it(`keeps ${text} as it is`, async () => {
        expect(await storedText(text)).to.equal(text.replace('\\u2028', '\u2028'));
      });
    }
    for (const [text, value] of [
      ['1E2', 100],
      ['1.0', 1],
      ['1.50', 1.5],
      ['-0.0', -0],
      ['0e5', 0],
    ] as const) {
      it(`keeps the value of ${text}`, async () => {
        const stored = JSON.parse((await storedText(text)) ?? '""');
        expect(Object.is(stored, value)).to.equal(true);
      });
    }
    const INEXACT = ['1e400', '-1e400', '12345678901234567890', '9007199254740993', '1e-400'];
    for (const text of [...INEXACT, '0.1000000000000000055', '123456789012345678']) {
      it(`refuses ${text}, which no double holds`, async () => {
        expectProblem(await tokens.createText(creation(text)), 400);
      });
    }
  });

  describe('metadata', () => {
    const create = (metadata: unknown) => tokens.create({ type: 'token', data: 1, metadata });
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));

    for (const metadata of [
      ...[{ a: 1 }, { a: null }, { a: true }, { a: { b: 'c' } }, { a: ['b'] }],
      ...['text', 1, ['a'], true, keys(51), { ['k'.repeat(101)]: 'v' }, { '': 'v' }],
      ...[{ a: 'v'.repeat(501) }, { a: 'v'.repeat(500_000) }, { a: 'nul \0' }, { 'nul \0': 'a' }],
    ]) {
      it(`refuses ${JSON.stringify(metadata).slice(0, 30)}`, async () => {
        expectProblem(await create(metadata), 400, 'metadata');
      });
    }
    for (const metadata of [
      ...[{}, keys(50), { a: '' }, { ['k'.repeat(100)]: 'v'.repeat(500) }],
      ...[{ 'a.b': '1', 'a[b]': '2', 'a b': '3', '🔑': '4', é: '5' }, { constructor: 'x' }],
    ]) {
      it(`keeps ${JSON.stringify(metadata).slice(0, 30)}`, async () => {
        const { status, body } = await create(metadata);
        expect(status).to.equal(201);
        expect((await tokens.read(body.id)).body.metadata).to.deep.equal(metadata);
      });
    }
    it('keeps a key named __proto__', async () => {
      const text = '{"type":"token","data":1,"metadata":{"__proto__":"p","a":"b"}}';
      const { body } = await tokens.createText(text);
      expect((await tokens.read(body.id)).text).to.contain('"metadata":{"__proto__":"p","a":"b"}');
      expect((await tokens.list('?metadata.__proto__=P')).body.data[0]?.id).to.equal(body.id);
    });
  });

  describe('members that do not fit their types', () => {
    const WRONG: [string, unknown[]][] = [
      ['id', [1, true, {}, ['abc'], 'x'.repeat(5_000)]],
      ['containers', ['/a/', 1, {}, [1], [null], [['/a/']]]],
      ['search_indexes', ['{{ data }}', 1, {}, Array(11).fill('{{ data }}'), ['x'.repeat(5_000)]]],
      ['fingerprint_expression', [1, {}, ['{{ data }}'], 'x'.repeat(401)]],
      ['deduplicate_token', ['true', 1, 0, {}, []]],
      ['expires_at', [1, {}, [], true, 1_893_456_000_000]],
    ];
    for (const [member, values] of WRONG) {
      it(`are refused in ${member}`, async () => {
        for (const value of values) {
          const answer = await tokens.create({ type: 'token', data: 1, [member]: value });
          expect(answer.status, JSON.stringify(value)).to.equal(400);
          const [path = ''] = Object.keys(JSON.parse(answer.text).errors);
          expect(path.split('.')[0]).to.equal(member);
        }
      });
    }
  });
});
