/** `http.request`, `https.request` and the module `node-fetch`, as code written for Node uses them. */
import { expect } from 'chai';
import { type Echo, type FetchingSandbox, startFetching } from './fetch-echo.ts';

describe('http.request in a script', () => {
  let inside: FetchingSandbox;
  before(async () => {
    inside = await startFetching();
  });
  after(() => inside.close());

  /** `make` gives a request; what it comes to is its response with the whole text, or its error. */
  const EXCHANGE = `
    const http = require('http');
    const finish = (make) => new Promise((resolve) => {
      const request = make((response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => { text += chunk; });
        response.on('end', () => resolve({ status: response.statusCode, text, response }));
      });
      request.on('error', (error) => resolve({ code: error.code, message: error.message }));
    });`;
  const value = (body: string) => inside.value(EXCHANGE + body);
  const echo = async (body: string): Promise<Echo> =>
    (await value(`${body} return JSON.parse((await done).text);`)) as Echo;

  it('sends what is written, from options', async () => {
    const seen = await echo(`
      const { hostname, port } = new URL(B);
      const done = finish((callback) => {
        const request = http.request({ hostname, port, path: '/a?b=c', method: 'post',
          headers: { 'X-A': ['1', '2'], 'Content-Length': 99, Host: 'evil.example' } }, callback);
        request.setHeader('Content-Type', 'text/plain');
        request.write('one '); request.write(Buffer.from('two '));
        request.write('dGhyZWU=', 'base64');
        return request.end();
      });`);
    expect(seen).to.include({ method: 'POST', url: '/a?b=c', body: 'one two three' });
    expect(seen.headers).to.include({ 'content-type': 'text/plain', 'content-length': '13' });
    expect(seen.headers.host).to.equal(new URL(inside.base).host);
    expect(seen.rawHeaders.filter((_, at, all) => all[at - 1] === 'X-A')).to.deep.equal(['1', '2']);
  });

  it('takes a URL, its user name, and options that override it', async () => {
    const done = "const url = B.replace('//', '//us%20er:pass@') + '/x?y';";
    const seen = await echo(`${done} const done = finish((callback) =>
      http.get(new URL(url), { headers: { a: 'b' }, agent: new http.Agent({ keepAlive: true }) }, callback));`);
    expect(seen).to.include({ method: 'GET', url: '/x?y', body: '' });
    expect(seen.headers).to.include({ a: 'b', authorization: 'Basic dXMgZXI6cGFzcw==' });
    const put = await echo(`const done = finish((callback) =>
      http.request(B + '/x', { method: 'PUT', path: '/z' }, callback).end('body'));`);
    expect(put).to.include({ method: 'PUT', url: '/z', body: 'body' });
  });

  it('has a response as of Node: headers, raw headers, bytes that are not decoded', async () => {
    const seen = await value(`
      const { response, text } = await finish((callback) => http.get(B + '/cookies', callback));
      const zipped = await new Promise((resolve) => http.get(B + '/zipped', async (response) => {
        const parts = [];
        for await (const part of response) parts.push(part);
        resolve(Buffer.concat(parts).toString('hex', 0, 2));
      }));
      const { statusCode, statusMessage, headers, rawHeaders, httpVersion, complete } = response;
      return [statusCode, statusMessage, headers['set-cookie'], headers['x-a'], httpVersion, complete,
        rawHeaders.slice(0, 4), text, zipped];`);
    expect(seen).to.deep.equal([
      ...[404, 'Not Found', ['a=1', 'b=2'], '1, 2', '1.1', true],
      ...[['Set-Cookie', 'a=1', 'set-cookie', 'b=2'], 'cookies', '1f8b'],
    ]);
  });

  it('frames a body of any method', async () => {
    for (const method of ['GET', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const seen = await echo(`const done = finish((callback) =>
        http.request(B, { method: '${method}' }, callback).end('body'));`);
      expect(seen).to.include({ method, body: 'body' });
      expect(seen.headers).to.include({ 'content-length': '4' });
    }
  });

  it('does not follow redirects', async () => {
    const seen = await value(`
      const { status, response } = await finish((callback) => http.get(B + '/inwards', callback));
      return [status, response.headers.location];`);
    expect(seen).to.deep.equal([302, 'http://169.254.169.254/']);
  });

  it('tells its life in events, in order', async () => {
    const seen = await value(`
      const events = [];
      await new Promise((resolve) => {
        const request = http.request(B + '/bytes');
        request.once('socket', (socket) => {
          events.push('socket', socket.connecting);
          request.end();
        });
        request.on('finish', () => events.push('finish')).on('close', () => { events.push('closed'); resolve(); });
        request.on('response', (response) => {
          events.push('response');
          response.on('data', (chunk) => events.push(chunk.length)).on('end', () => events.push('end'))
            .on('close', () => events.push('close'));
        });
      });
      return events;`);
    expect(seen).to.deep.equal([
      ...['socket', false, 'finish', 'response', 4, 'end', 'close', 'closed'],
    ]);
  });

  it('can be piped, paused, read by hand, or left alone', async () => {
    const seen = await value(`
      const written = [];
      const sink = { write: (chunk) => written.push(chunk.length), end: () => written.push('end') };
      const open = (use) => new Promise((resolve) => http.get(B + '/bytes', (response) => {
        response.on('close', resolve);
        use(response);
      }));
      await open((response) => response.pipe(sink));
      await open((response) => {
        response.on('readable', () => {
          let chunk;
          while ((chunk = response.read()) !== null) written.push(chunk.length);
        });
      });
      await open((response) => {
        response.pause();
        response.on('data', (chunk) => written.push('late'));
        written.push(response.isPaused());
        setTimeout(() => response.resume(), 5);
      });
      await new Promise((resolve) => http.get(B + '/bytes').on('close', resolve));
      return written;`);
    expect(seen).to.deep.equal([4, 'end', 4, true, 'late']);
  });

  it('times out, is destroyed and aborted', async () => {
    const seen = await value(`
      const timed = await new Promise((resolve) => {
        const request = http.get(B + '/hang', { timeout: 20 });
        request.on('timeout', () => request.destroy(new Error('mine')));
        request.on('error', (error) => resolve(error.message));
      });
      const aborted = await finish((callback) => {
        const request = http.get(B + '/hang', callback);
        setTimeout(() => request.abort(), 5);
        return request;
      });
      const signalled = await finish((callback) =>
        http.get(B + '/hang', { signal: AbortSignal.timeout(5) }, callback));
      return [timed, aborted.code, signalled.code];`);
    expect(seen).to.deep.equal(['mine', 'ECONNRESET', 'ABORT_ERR']);
  });

  it('ends the run when nobody listens for its error, or when a listener throws', async () => {
    const wait = 'await new Promise((resolve) => setTimeout(resolve, 5000));';
    const unheard = await inside.errors(`require('http').get('http://127.0.0.1:1/'); ${wait}`);
    expect(unheard).to.deep.equal(['The destination could not be reached']);
    const thrown = await inside.errors(`require('http').get(B, (response) =>
      response.on('data', () => { throw new Error('thrown in data'); })); ${wait}`);
    expect(thrown).to.deep.equal(['thrown in data']);
  });

  const HOSTILE: [what: string, options: string, code: string | null][] = [
    [
      'a path that would be a host',
      "{ hostname: 'example.com', path: '@127.0.0.1/' }",
      'ENOTREACHED',
    ],
    ['a host with a path', "{ hostname: 'example.com/x?', path: '/' }", 'ERR_INVALID_ARG_VALUE'],
    ['a host with a user name', "{ hostname: 'a@127.0.0.1' }", 'ERR_INVALID_ARG_VALUE'],
    ['a host with a fragment', "{ host: '127.0.0.1#.example.com' }", 'ERR_INVALID_ARG_VALUE'],
    [
      'a line break in the path',
      "{ hostname: '127.0.0.1', path: '/ HTTP/1.1\\r\\nEvil: 1' }",
      'ERR_UNESCAPED_CHARACTERS',
    ],
    ['a line break in a header', "{ headers: { a: 'b\\r\\nc: d' } }", 'ERR_INVALID_CHAR'],
    ['a line break in a header name', "{ headers: { 'a\\r\\nb': 'c' } }", 'ERR_INVALID_HTTP_TOKEN'],
    ['a line break in the method', "{ method: 'GET / HTTP/1.1\\r\\n' }", 'ERR_INVALID_HTTP_TOKEN'],
    ['a local socket', "{ socketPath: '/var/run/docker.sock' }", 'ERR_INVALID_ARG_VALUE'],
    ['a port that is none', "{ hostname: '127.0.0.1', port: '80@evil' }", 'ERR_SOCKET_BAD_PORT'],
    ['another protocol', "{ protocol: 'file:' }", 'ERR_INVALID_PROTOCOL'],
    ['a client certificate', "{ cert: 'PEM', key: 'PEM' }", 'ERR_NOT_AVAILABLE'],
  ];
  for (const [what, options, code] of HOSTILE) {
    it(`refuses ${what}`, async () => {
      const before = inside.destination.requests.length;
      const seen = await value(`
        try { return await finish((callback) => http.get(${options}, callback)); }
        catch (error) { return { code: error.code, message: error.message }; }`);
      if (code === 'ENOTREACHED') expect(seen).to.have.property('code').that.is.not.equal(null);
      else expect(seen).to.have.property('code', code);
      expect(JSON.stringify(seen)).not.to.match(/evil|docker|PEM/i);
      expect(inside.destination.requests).to.have.length(before);
    });
  }

  it('goes to https with https, whatever the TLS options say', async () => {
    const seen = await inside.value(`
      const https = require('https');
      const port = new URL(B).port;
      return new Promise((resolve) => https.get({ host: '127.0.0.1', port, rejectUnauthorized: false,
        agent: new https.Agent({ rejectUnauthorized: false }) }).on('error', (error) => resolve(error.code)));`);
    expect(seen).to.equal('ERR_TLS_FAILED');
  });

  it('has no server', async () => {
    expect(await inside.errors("require('http').createServer();")).to.deep.equal([
      'Servers are not available here.',
    ]);
  });

  it('is node-fetch for who requires that', async () => {
    const seen = await inside.value(`
      const nodeFetch = require('node-fetch');
      const { default: fetch, Headers, FetchError } = nodeFetch;
      const response = await nodeFetch(B, { method: 'POST', body: 'x', agent: {}, headers: new Headers({ a: 'b' }) });
      const sent = await response.json();
      const bytes = await (await fetch(B + '/bytes')).buffer();
      const piped = await new Promise(async (resolve) => {
        const parts = [];
        (await fetch(B + '/bytes')).body.on('data', (part) => parts.push(part))
          .on('end', () => resolve(Buffer.concat(parts).length));
      });
      const failed = (...args) => fetch(...args).catch((error) =>
        [error.name, error.type, error.code, error.message]);
      return [sent.body, sent.headers.a, Buffer.isBuffer(bytes), bytes.length, piped,
        (await fetch(B + '/cookies')).headers.raw()['set-cookie'],
        await failed('http://10.0.0.1/4242'), await failed(B + '/hang', { timeout: 20 }),
        await failed(B + '/hang', { signal: AbortSignal.timeout(20) }),
        await failed(B + '/moved', { redirect: 'error' }), nodeFetch === fetch, typeof FetchError,
        (await (await fetch(B + '/bytes')).clone().buffer()).length];`);
    const why =
      'request failed, reason: The host leads to an address that is not public (private ones: SALLYPORT_EGRESS_ALLOW)';
    const redirect = 'request failed, reason: The destination answered with a redirect';
    expect(seen).to.deep.equal([
      ...['x', 'b', true, 4, 4, ['a=1', 'b=2']],
      ['FetchError', 'system', 'ERR_DESTINATION_REFUSED', why],
      ['FetchError', 'request-timeout', null, 'The request took too long.'],
      ['AbortError', 'aborted', null, 'The user aborted a request.'],
      ...[['FetchError', 'no-redirect', 'ERR_REDIRECT', redirect], true, 'function', 4],
    ]);
  });
});
