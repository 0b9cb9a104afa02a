/**
 * Answers that send values back in ways that a plain search does not see: compressed, through transforms
 * and scripts, and brought out by the transform itself. What is to be masked is read or refused.
 */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { JsonObject } from '../support/http-call.ts';
import { type Origin, startOrigin } from './origin.ts';
import { type Proxies, type ProxyDraft, startProxies } from './proxies.ts';
import { parseAnswer, type RawAnswer, request, sendRaw, valuesOf } from './raw-client.ts';
import { transform } from './transforming.ts';

const SECRET = '4242424242424242';
const STARS = '*'.repeat(SECRET.length);
const MIB = 1024 * 1024;
/** Some 60 bytes; 1 GiB is 165. */
const BOMB = brotliCompressSync(Buffer.alloc(64 * MIB)).toString('latin1');

interface Asked {
  readonly answer: RawAnswer;
  readonly origin: Origin;
  /** In headers and in bodies. */
  readonly leaks: number;
  readonly unwatched: Record<string, number>;
}

type Draft = Omit<ProxyDraft, 'destination_url'> & { application?: { id: string } };

describe('a watched answer', () => {
  let proxies: Proxies;
  let token: string;
  before(async () => {
    proxies = await startProxies({ SANDBOX_HOSTS: '1' });
    token = await proxies.token({ number: SECRET });
  });
  after(() => proxies?.stop());
  const origins: Origin[] = [];
  afterEach(async () => {
    for (const origin of origins.splice(0)) await origin.close();
  });

  /** `content` (latin1) under the given headers. */
  const answering = (content: string, ...headers: string[]): string =>
    ['HTTP/1.1 200 OK', ...headers, `Content-Length: ${content.length}`, '', content].join('\r\n');
  const echo = (compress: (text: string) => Buffer, ...headers: string[]): string =>
    answering(compress(`{"number":"${SECRET}"}`).toString('latin1'), ...headers);
  const count = (reason: string): Promise<number> =>
    proxies.metric('sallyport_proxy_unwatched_answers_total', { reason });
  const countLeaks = (): Promise<number> => proxies.metric('sallyport_proxy_leaks_total');

  async function startAnswering(bytes: string): Promise<Origin> {
    const origin = await startOrigin(bytes);
    origins.push(origin);
    return origin;
  }

  async function ask(
    bytes: string,
    draft: Draft,
    {
      line = 'POST /proxy',
      expression = `{{ ${token} | json: '$.number' }}`,
      reserved = [] as readonly string[],
    } = {},
  ): Promise<Asked> {
    const origin = await startAnswering(bytes);
    const { key } = await proxies.proxy({ destination_url: origin.url, ...draft });
    const body = JSON.stringify({ value: expression });
    const lines = [
      ...[`BT-API-KEY: ${proxies.key}`, `BT-PROXY-KEY: ${key}`, 'Accept-Encoding: gzip'],
      ...['Content-Type: application/json', `Content-Length: ${body.length}`, 'Connection: close'],
      ...reserved,
    ];
    const leaksBefore = await countLeaks();
    const reasons = ['values', 'coding', 'size'];
    const before = await Promise.all(reasons.map(count));
    const grownBy = async (reason: string, index: number): Promise<[string, number]> => [
      reason,
      (await count(reason)) - (before[index] ?? 0),
    ];
    const { text } = await sendRaw(proxies.port, request(line, lines, body));
    const more = await Promise.all(reasons.map(grownBy));
    return {
      ...{ answer: parseAnswer(text), origin, leaks: (await countLeaks()) - leaksBefore },
      unwatched: Object.fromEntries(more.filter(([, grown]) => grown > 0)),
    };
  }

  const codings: [string[], (text: string) => Buffer][] = [
    [['Content-Encoding: gzip'], gzipSync],
    [['Content-Encoding: X-GZIP'], gzipSync],
    [['Content-Encoding: br'], brotliCompressSync],
    [['Content-Encoding: deflate'], deflateSync],
    [['Content-Encoding: identity', 'Content-Encoding: gzip'], gzipSync],
    [['Content-Encoding: , gzip'], gzipSync],
  ];
  for (const [headers, compress] of codings) {
    it(`is masked although it is compressed: ${headers.join(' and ')}`, async () => {
      const { answer, leaks } = await ask(echo(compress, ...headers), { leak_tripwire: 'redact' });
      expect([answer.status, answer.body]).to.deep.equal([200, `{"number":"${STARS}"}`]);
      expect(valuesOf(answer, 'content-encoding')).to.deep.equal([]);
      expect(valuesOf(answer, 'content-length')).to.deep.equal([String(answer.body.length)]);
      expect(leaks).to.equal(1);
    });
  }

  it('is masked although its coding stands behind 1,000 other headers, by either engine', async () => {
    const many = Array.from({ length: 1_010 }, () => 'a:1');
    for (const reserved of [[], ['BT-PROXY-CONNECTION: keep-alive']]) {
      const bytes = echo(gzipSync, ...many, 'Content-Encoding: gzip');
      const { answer, leaks } = await ask(bytes, { leak_tripwire: 'redact' }, { reserved });
      expect([answer.status, answer.body, leaks]).to.deep.equal([200, `{"number":"${STARS}"}`, 1]);
    }
  });

  const chunked = (content: string): string =>
    `${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`;
  const unreadable: Record<string, string> = {
    'in a coding of the transfer': [
      ...['HTTP/1.1 200 OK', 'Transfer-Encoding: gzip, chunked', ''],
      chunked(gzipSync(SECRET).toString('latin1')),
    ].join('\r\n'),
    'in a coding that is not undone': echo(gzipSync, 'Content-Encoding: compress'),
    'in two codings': echo((text) => gzipSync(gzipSync(text)), 'Content-Encoding: gzip, gzip'),
    'in two codings, apart': echo(gzipSync, 'Content-Encoding: br', 'Content-Encoding: gzip'),
    'in another coding than it says': echo(deflateSync, 'Content-Encoding: gzip'),
    'as a bomb': answering(BOMB, 'Content-Encoding: br'),
  };
  for (const [how, bytes] of Object.entries(unreadable)) {
    it(`is refused where values are masked and it comes ${how}: 502`, async () => {
      const { answer } = await ask(bytes, { leak_tripwire: 'redact' });
      expect(answer.status).to.equal(502);
      expect(JSON.parse(answer.body)).to.have.all.keys('proxy_error');
      expect(valuesOf(answer, 'bt-proxy-destination-status')).to.deep.equal([]);
    });
  }

  it('that is compressed passes as it came where values are only reported', async () => {
    const coded: [string, string][] = [
      [answering(BOMB, 'Content-Encoding: br'), 'size'],
      [unreadable['in two codings'] as string, 'coding'],
    ];
    for (const [bytes, reason] of coded) {
      const before = await count(reason);
      const { answer } = await ask(bytes, {});
      expect(bytes.endsWith(`\r\n\r\n${answer.body}`)).to.equal(true);
      // Decoded beside the answer: it may be seen a moment later.
      while ((await count(reason)) === before) await new Promise(setImmediate);
    }
  });

  const behind: [string, (text: string) => Buffer, string][] = [
    ['gzip', gzipSync, ''],
    ['gzip', gzipSync, '\0'],
    ['br', brotliCompressSync, ''],
    ['deflate', deflateSync, ''],
  ];
  for (const [coding, compress, between] of behind) {
    const what = between === '' ? coding : `${coding} and a null byte`;
    it(`with bytes behind the end of ${what} is counted where values are reported`, async () => {
      const packed = compress(`{"number":"${SECRET}"}`).toString('latin1');
      const pass = async (bytes: string): Promise<void> => {
        const { answer } = await ask(answering(bytes, `Content-Encoding: ${coding}`), {});
        expect(answer.body).to.equal(bytes);
      };
      const unwatched = await count('coding');
      await pass(packed + between + SECRET);
      // Decoded beside the answer: it may be seen a moment later.
      while ((await count('coding')) === unwatched) await new Promise(setImmediate);
      const leaks = await countLeaks();
      await pass(packed);
      while ((await countLeaks()) === leaks) await new Promise(setImmediate);
      expect(await count('coding')).to.equal(unwatched + 1);
    });
  }

  it('without a body keeps the header of a coding', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Encoding: odd\r\nContent-Length: 9\r\n\r\n';
    const { answer, unwatched } = await ask(
      head,
      { leak_tripwire: 'redact' },
      { line: 'HEAD /proxy' },
    );
    expect([answer.status, answer.body, unwatched]).to.deep.equal([200, '', {}]);
    expect(valuesOf(answer, 'content-encoding')).to.deep.equal(['odd']);
    expect(valuesOf(answer, 'content-length')).to.deep.equal(['9']);
  });

  it('is masked before a transform sees it, and refused as a bomb', async () => {
    const response_transform = transform('return { body: { seen: req.args.body } };');
    const draft = { leak_tripwire: 'redact', response_transform };
    const json = 'Content-Type: application/json';
    const bytes = echo(gzipSync, 'Content-Encoding: gzip', json);
    const { answer, leaks } = await ask(bytes, draft);
    expect(JSON.parse(answer.body)).to.deep.equal({ seen: { number: STARS } });
    expect(leaks).to.equal(1);
    const reported = await ask(bytes, { response_transform });
    expect(JSON.parse(reported.answer.body)).to.deep.equal({ seen: { number: SECRET } });
    expect(reported.leaks).to.equal(1);
    const bomb = await ask(answering(BOMB, 'Content-Encoding: br'), { response_transform });
    expect(bomb.answer.status).to.equal(502);
  });

  it('is masked before a script sees it', async () => {
    const origin = await startAnswering(echo(gzipSync, 'Content-Encoding: gzip'));
    const draft = { destination_url: origin.url, leak_tripwire: 'redact' };
    const { key } = await proxies.proxy(draft);
    const application = await proxies.application({
      rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:use'] }],
    });
    const code = `
      const body = { value: '{' + '{ ' + req.args.token + ' }' + '}' };
      const headers = { 'BT-PROXY-KEY': req.args.key };
      return { raw: { got: await req.bt.proxy.post({ body, headers }) } };`;
    const json = { name: 'R', application: { id: application.id }, ...transform(code) };
    const { id } = await proxies.manage('POST /reactors', { json });
    const rest = { key: proxies.key, json: { args: { key, token } } };
    const { raw } = await proxies.manage(`POST /reactors/${id}/react`, rest);
    expect(String((raw as JsonObject).got)).to.not.contain(SECRET);
    expect(JSON.stringify(raw)).to.contain(STARS);
  });

  describe('to a request whose transform brought values out by itself', () => {
    const reading: Record<string, string> = {
      'tokens.retrieve':
        'const { data } = await req.bt.tokens.retrieve(id); const pan = data.number;',
      'tokens.list':
        'const { data } = await req.bt.tokens.list({ id: [id] }); const pan = data[0].data.number;',
      detokenize: `const { text } = await req.bt.detokenize({
        text: 'pan: {' + '{ ' + id + " | json: '$.number' }" + '}' }); const pan = text.slice(5);`,
    };
    for (const [how, read] of Object.entries(reading)) {
      it(`with ${how}: they are masked`, async () => {
        const { id } = await proxies.application({
          rules: [
            { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] },
          ],
        });
        const code = `const id = req.args.body.value; ${read} return { body: { pan } };`;
        const draft = { application: { id }, request_transform: transform(code) };
        const bytes = answering(`pan ${SECRET} known`);
        const plain = { expression: token };
        const { answer, origin, leaks } = await ask(
          bytes,
          { ...draft, leak_tripwire: 'redact' },
          plain,
        );
        expect(origin.received[0]?.body, answer.body).to.equal(`{"pan":"${SECRET}"}`);
        expect(origin.received[0]?.headers).to.include('Accept-Encoding: identity');
        expect([answer.body, leaks]).to.deep.equal([`pan ${STARS} known`, 1]);
        const reported = await ask(bytes, draft, plain);
        expect([reported.answer.body, reported.leaks]).to.deep.equal([`pan ${SECRET} known`, 1]);
      });
    }

    it('in an answer that is too long to be searched: 502, and nothing is sent', async () => {
      const { id } = await proxies.application({
        rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }],
      });
      const code = `
        await req.bt.tokens.list({ id: req.args.body.value.split(',') }); return { body: 'x' };`;
      const draft = { application: { id }, request_transform: transform(code) };
      const texts = Array(190).fill('x'.repeat(1_000));
      const ids = await Promise.all(Array.from({ length: 6 }, () => proxies.token(texts)));
      const rest = { expression: ids.join() };
      const bytes = answering('known');
      const refused = await ask(bytes, { ...draft, leak_tripwire: 'redact' }, rest);
      expect([refused.answer.status, refused.origin.received]).to.deep.equal([502, []]);
      const reported = await ask(bytes, draft, rest);
      expect([reported.answer.body, reported.unwatched]).to.deep.equal(['known', { values: 1 }]);
    });
  });

  describe('to a request that brought out more than can be looked for', () => {
    const overlapping = Array.from({ length: 900 }, (_, index) => 'a'.repeat(8 + index));
    const letters = answering('a'.repeat(10 * MIB));

    it('passes unwatched where values are reported, and that is counted', async () => {
      const many = await proxies.token(overlapping);
      const expression = `{{ ${many} }}`;
      const { answer, leaks, unwatched } = await ask(letters, {}, { expression });
      expect([answer.status, answer.body.length, leaks]).to.deep.equal([200, 10 * MIB, 0]);
      expect(unwatched).to.deep.equal({ values: 1 });
    });

    it('is never asked for where values are masked: 502, and nothing is sent', async () => {
      const many = await proxies.token(overlapping);
      const draft = { leak_tripwire: 'redact' };
      const { answer, origin } = await ask(letters, draft, { expression: `{{ ${many} }}` });
      expect(answer.status).to.equal(502);
      expect(JSON.parse(answer.body)).to.have.all.keys('proxy_error');
      expect(origin.received).to.have.length(0);
    });
  });
});
