/** `fetch` and what belongs to it, as a script sees them (WHATWG Fetch, as far as it is offered). */
import { expect } from 'chai';
import { type Echo, type FetchingSandbox, startFetching } from './fetch-echo.ts';

describe('fetch in a script', () => {
  let inside: FetchingSandbox;
  before(async () => {
    inside = await startFetching();
  });
  after(() => inside.close());

  const echo = async (body: string): Promise<Echo> => (await inside.value(body)) as Echo;

  it('brings status, headers and body', async () => {
    const value = await inside.value(`
      const r = await fetch(B + '/cookies');
      return { status: r.status, ok: r.ok, text: r.statusText, url: r.url, type: r.type,
        redirected: r.redirected, cookies: r.headers.getSetCookie(), a: r.headers.get('x-A'),
        none: r.headers.get('x-none'), body: await r.text(), used: r.bodyUsed };`);
    expect(value).to.deep.equal({
      ...{ status: 404, ok: false, text: 'Not Found', url: `${inside.base}/cookies` },
      ...{ type: 'basic', redirected: false, cookies: ['a=1', 'b=2'], a: '1, 2', none: null },
      ...{ body: 'cookies', used: true },
    });
  });

  it('sends what a program sends', async () => {
    const sent = await echo(`return (await fetch(B + '/echo?a=b#c', { method: 'patch',
      headers: { 'X-Key': 'k', accept: 'text/plain' }, body: JSON.stringify({ a: 'ä' }) })).json();`);
    expect(sent).to.include({ method: 'PATCH', url: '/echo?a=b', body: '{"a":"Ã¤"}' });
    expect(sent.headers).to.include({ 'x-key': 'k', accept: 'text/plain', 'content-length': '10' });
    expect(sent.headers).to.include({ 'user-agent': 'sallyport' });
    expect(sent.headers['content-type']).to.equal('text/plain;charset=UTF-8');
    expect(sent.rawHeaders).to.include('X-Key');
  });

  const BODIES: [what: string, body: string, type: string | undefined, sent: string][] = [
    [
      'URLSearchParams',
      "new URLSearchParams({ a: 'b c' })",
      'application/x-www-form-urlencoded;charset=UTF-8',
      'a=b+c',
    ],
    ['a Buffer', "Buffer.from('00ff', 'hex')", undefined, '\0ÿ'],
    ['a part of a buffer', 'new Uint8Array([1, 2, 3, 4]).subarray(1, 3)', undefined, '\x02\x03'],
    ['an ArrayBuffer', 'new Uint8Array([5]).buffer', undefined, '\x05'],
    ['a Blob', "new Blob(['a', new Uint8Array([98])], { type: 'text/X' })", 'text/x', 'ab'],
    [
      'an async iterable',
      "(async function* () { yield 'a'; yield new Uint8Array([98]); })()",
      undefined,
      'ab',
    ],
    ['a ReadableStream', "ReadableStream.from(['a', 'b'])", undefined, 'ab'],
    ['anything else, as text', '{}', 'text/plain;charset=UTF-8', '[object Object]'],
  ];
  for (const [what, body, type, sent] of BODIES) {
    it(`sends ${what}`, async () => {
      const seen = await echo(`return (await fetch(B, { method: 'POST', body: ${body} })).json();`);
      expect(seen.body).to.equal(sent);
      expect(seen.headers['content-type']).to.equal(type);
      expect(seen.headers['content-length']).to.equal(String(sent.length));
    });
  }

  it('sends a form, and no name or file name in it can begin a part of its own', async () => {
    const seen = await echo(`
      const form = new FormData();
      form.append('a"\\r\\nX-Evil: 1', 'one\\ntwo');
      form.append('file', new Blob(['bytes'], { type: 'text/plain' }), 'x"\\r\\n.txt');
      return (await fetch(B, { method: 'POST', body: form })).json();`);
    const boundary = /^multipart\/form-data; boundary=(.{20,})$/.exec(
      seen.headers['content-type'] ?? '',
    )?.[1];
    expect(seen.body).to.equal(
      [
        `--${boundary}`,
        'Content-Disposition: form-data; name="a%22%0D%0AX-Evil: 1"',
        ...['', 'one', 'two', `--${boundary}`],
        'Content-Disposition: form-data; name="file"; filename="x%22%0D%0A.txt"',
        ...['Content-Type: text/plain', '', 'bytes', `--${boundary}--`, ''],
      ].join('\r\n'),
    );
  });

  it('reads a body in every way, once', async () => {
    expect(
      await inside.value("return Array.from(await (await fetch(B + '/bytes')).bytes());"),
    ).to.deep.equal([0, 255, 128, 10]);
    const arrayBuffer = "return (await (await fetch(B + '/bytes')).arrayBuffer()).byteLength;";
    expect(await inside.value(arrayBuffer)).to.equal(4);
    expect(await inside.value("return (await (await fetch(B + '/bytes')).blob()).size;")).to.equal(
      4,
    );
    expect(await inside.value("return (await fetch(B + '/marked')).json();")).to.deep.equal({
      a: 'ä€😀',
    });
    expect(await inside.value("return (await fetch(B + '/zipped')).text();")).to.equal('unzipped');
    expect(
      await inside.value("return [...await (await fetch(B + '/form')).formData()];"),
    ).to.deep.equal([
      ['a', '1'],
      ['b', 'x y'],
    ]);
    expect(
      await inside.value(
        "const r = await fetch(B + '/none'); return [r.status, r.body, await r.text()];",
      ),
    ).to.deep.equal([204, null, '']);
    const twice = "const r = await fetch(B + '/bytes'); await r.text(); return r.json();";
    expect(await inside.errors(twice)).to.deep.equal([
      'The body is locked or has already been read.',
    ]);
  });

  it('reads a body as a stream', async () => {
    const value = await inside.value(`
      const parts = [];
      for await (const part of (await fetch(B + '/bytes')).body) parts.push(...part);
      const reader = (await fetch(B + '/bytes')).body.getReader();
      const first = await reader.read();
      const [one, two] = (await fetch(B + '/bytes')).body.tee();
      const tee = [];
      for await (const part of one) tee.push(part.length);
      for await (const part of two) tee.push(part.length);
      return { parts, first: Array.from(first.value), last: (await reader.read()).done, tee };`);
    const bytes = [0, 255, 128, 10];
    expect(value).to.deep.equal({ parts: bytes, first: bytes, last: true, tee: [4, 4] });
  });

  it('clones requests and responses', async () => {
    const value = await inside.value(`
      const request = new Request(B, { method: 'PUT', body: 'x', headers: { a: 'b' } });
      const copy = request.clone();
      const responses = await Promise.all([fetch(request), fetch(copy)]);
      const again = responses[0].clone();
      const read = await Promise.all([...responses, again].map((r) => r.json()));
      return read.map(({ method, body, headers }) => [method, body, headers.a]).concat([
        [again.url === responses[0].url, request.bodyUsed, copy instanceof Request]]);`);
    const sent = ['PUT', 'x', 'b'];
    expect(value).to.deep.equal([sent, sent, sent, [true, true, true]]);
  });

  it('follows redirects or not, as asked', async () => {
    const value = await inside.value(`
      const followed = await fetch(B + '/moved', { method: 'POST', body: 'x' });
      const shown = await fetch(B + '/moved', { redirect: 'manual' });
      return [followed.redirected, (await followed.json()).method, shown.status,
        shown.headers.get('location'), await shown.text()];`);
    expect(value).to.deep.equal([true, 'GET', 302, '/echo', 'moved']);
    const refused = await inside.errors("return fetch(B + '/moved', { redirect: 'error' });");
    expect(refused).to.deep.equal(['The destination answered with a redirect']);
    const inwards = await inside.errors("return fetch(B + '/inwards');");
    expect(inwards).to.deep.equal([
      'The host leads to an address that is not public (private ones: SALLYPORT_EGRESS_ALLOW)',
    ]);
  });

  it('says why it failed by a TypeError with a code', async () => {
    const value = await inside.value(`
      const failed = async (...args) => {
        try { await fetch(...args); } catch (error) {
          return [error instanceof TypeError, error.code, error.cause instanceof Error];
        }
      };
      return [await failed('http://10.0.0.1/4242'), await failed('http://127.0.0.1:1/'),
        await failed('/relative'), await failed('https://a:b@example.com/'),
        await failed(B, { headers: { a: 'b\\r\\nc: d' } }), await failed(B, { headers: { 'a b': '' } }),
        await failed(B, { body: 'x' }), await failed(B, { method: 'CONNECT' }),
        await failed('file:///etc/passwd'), await failed(B, { method: 'POST', body: 'x'.repeat(6e6) }),
        await failed(B, { headers: { a: '\\u560d\\u560a' } })];`);
    expect(value).to.deep.equal([
      ...[
        [true, 'ERR_DESTINATION_REFUSED', true],
        [true, 'ECONNREFUSED', true],
      ],
      ...[[true, 'ERR_INVALID_URL', false], ...Array(5).fill([true, null, false])],
      ...[
        [true, 'ERR_INVALID_URL', true],
        [true, 'ERR_REQUEST_TOO_LARGE', true],
      ],
      [true, null, false],
    ]);
  });

  it('is aborted by a controller, a timeout, or any of them', async () => {
    const value = await inside.value(`
      const reason = (signal) => fetch(B + '/hang', { signal }).catch((error) => [error.name, error.message ?? error]);
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 20);
      const second = new AbortController();
      setTimeout(() => second.abort('why'), 20);
      return [await reason(controller.signal), await reason(AbortSignal.timeout(20)),
        await reason(AbortSignal.abort()),
        await reason(AbortSignal.any([second.signal, AbortSignal.timeout(20_000)]))];`);
    const aborted = ['AbortError', 'This operation was aborted'];
    expect(value).to.deep.equal([
      ...[aborted, ['TimeoutError', 'The operation timed out'], aborted],
      [null, 'why'],
    ]);
  });

  it('has Headers and Response that programs may make themselves', async () => {
    const value = await inside.value(`
      const headers = new Headers([['B', '1'], ['a', ' 2 '], ['b', '3']]);
      headers.append('A', '4'); headers.set('c', 5); headers.delete('none');
      const json = Response.json({ a: 1 }, { status: 201 });
      return [[...headers], headers.has('C'), json.status, json.headers.get('content-type'),
        await json.json(), Response.error().type, Response.redirect(B).headers.get('location'),
        await new Response('x').text(), structuredClone(await new Blob(['abc']).slice(1).text())];`);
    expect(value).to.deep.equal([
      [
        ['a', '2, 4'],
        ['b', '1, 3'],
        ['c', '5'],
      ],
      ...[true, 201, 'application/json', { a: 1 }, 'error', `${inside.base}/`, 'x', 'bc'],
    ]);
  });

  it('is not there without the service, and says so', async () => {
    const source = "module.exports = () => fetch('https://example.com/');";
    const result = await inside.sandbox.result(source);
    expect(result).to.have.nested.property('error.errors.error[0]').that.includes('not available');
  });

  it('has its events, and an exception in a listener ends the run', async () => {
    const value = await inside.value(`
      const target = new EventTarget();
      const seen = [];
      target.addEventListener('a', (event) => seen.push(event.type, event.target === target), { once: true });
      target.addEventListener('a', { handleEvent: (event) => seen.push(event.detail) });
      target.dispatchEvent(new CustomEvent('a', { detail: 7 }));
      target.dispatchEvent(new Event('a'));
      return [seen, new DOMException('m', 'DataCloneError').code, DOMException.ABORT_ERR];`);
    expect(value).to.deep.equal([['a', true, 7, null], 25, 20]);
    const thrown = await inside.errors(`
      const controller = new AbortController();
      controller.signal.onabort = () => { throw new Error('in a listener'); };
      controller.abort(); await new Promise((resolve) => setTimeout(resolve, 1000));`);
    expect(thrown).to.deep.equal(['in a listener']);
  });

  it('has a process that is made up, and clocks', async () => {
    const value = await inside.value(`
      const before = process.hrtime();
      const start = process.hrtime.bigint();
      await new Promise((resolve) => process.nextTick(resolve));
      await new Promise((resolve) => setTimeout(resolve, 20));
      const [seconds, nanoseconds] = process.hrtime(before);
      return [Object.keys(process.env), seconds * 1e9 + nanoseconds > 0, process.hrtime.bigint() > start,
        performance.now() > 0, typeof process.version, process === require('process'),
        typeof process.exit, typeof process.binding, typeof process.mainModule];`);
    expect(value).to.deep.equal([
      ...[[], true, true, true, 'string', true, 'undefined', 'undefined', 'undefined'],
    ]);
  });
});
