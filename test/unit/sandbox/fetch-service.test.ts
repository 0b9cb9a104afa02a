/** Fetches of scripts against real destinations: answers, redirects, encodings, connections, TLS. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { type Destination, startHttp, startHttps, startTcp } from '../egress/destinations.ts';
import { issueCertificate } from '../egress/issue-certificate.ts';
import { type Asking, startAsking } from './fetch-asking.ts';

type Reply = (request: IncomingMessage, response: ServerResponse) => void;

describe('the fetch of a script in the gateway', () => {
  let asking: Asking;
  let destination: Destination;
  let reply: Reply;
  let base: string;
  const opened: { close(): Promise<void> }[] = [];

  before(async () => {
    asking = startAsking();
    destination = await startHttp((request, response) => reply(request, response));
    base = `http://127.0.0.1:${destination.port}`;
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });
  after(async () => {
    await asking.fetches.close();
    await destination.close();
  });

  it('sends what was asked for and brings back what was answered', async () => {
    let seen: string[] = [];
    let body = '';
    reply = async (request, response) => {
      seen = request.rawHeaders;
      for await (const chunk of request) body += String(chunk);
      response.writeHead(201, 'Made', ['X-Two', '1', 'x-two', '2', 'Set-Cookie', 'a=1']).end('ok');
    };
    const answer = await asking.ask(`${base}/a?b=c#d`, {
      ...{ method: 'POST', text: '{"a":"ä"}', headers: [['X-KEY', 'secret']] },
    });
    expect(answer).to.include({ status: 201, status_text: 'Made', text: 'ok', redirected: false });
    expect(answer.url).to.equal(`${base}/a?b=c`);
    expect(answer.headers.filter(([name]) => /two|cookie/i.test(name))).to.deep.equal([
      ...[
        ['X-Two', '1'],
        ['x-two', '2'],
        ['Set-Cookie', 'a=1'],
      ],
    ]);
    expect(body).to.equal('{"a":"ä"}');
    expect(seen).to.include.members(['X-KEY', 'secret', 'user-agent', 'sallyport', '10']);
    expect(destination.requests.at(-1)).to.equal('/a?b=c');
  });

  it('does not let a script name another host than the one it connects to', async () => {
    let host: string | undefined;
    reply = (request, response) => {
      host = request.headers.host;
      response.end();
    };
    await asking.ask(base, {
      headers: [
        ['Host', 'other.example'],
        ['host', 'third.example'],
      ],
    });
    expect(host).to.equal(`127.0.0.1:${destination.port}`);
  });

  it('brings bytes that are no text as they are', async () => {
    const bytes = Buffer.from([0, 255, 254, 128, 10]);
    reply = (_request, response) => response.end(bytes);
    expect((await asking.ask(base)).base64).to.equal(bytes.toString('base64'));
    reply = (_request, response) => response.end('\0"\\\u2028\ufeff');
    expect((await asking.ask(base)).text).to.equal('\0"\\\u2028\ufeff');
    reply = (_request, response) => response.end('ä'.repeat(100_000));
    expect(await asking.textOf(base)).to.equal('ä'.repeat(100_000));
  });

  const CODINGS: [string, (text: string) => Buffer][] = [
    ['gzip', gzipSync],
    ['X-GZIP', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
  ];
  for (const [coding, encode] of CODINGS) {
    it(`decodes ${coding} by ${encode.name}, unless raw bytes are asked for`, async () => {
      const encoded = encode('x'.repeat(100_000));
      reply = (_request, response) => response.setHeader('Content-Encoding', coding).end(encoded);
      expect(await asking.textOf(base)).to.equal('x'.repeat(100_000));
      const raw = await asking.ask(base, { decode: false });
      expect(raw.base64).to.equal(encoded.toString('base64'));
    });

    it(`says when ${coding} by ${encode.name} is broken`, async () => {
      const cut = encode('some text that is cut off').subarray(0, -6);
      reply = (_request, response) => response.setHeader('Content-Encoding', coding).end(cut);
      expect(await asking.failure(base)).to.include({ code: 'ERR_CONTENT_DECODING_FAILED' });
    });
  }

  it('leaves codings alone that it does not know, and bodies that are none', async () => {
    reply = (_request, response) => response.setHeader('Content-Encoding', 'zzz').end('text');
    expect((await asking.ask(base)).text).to.equal('text');
    reply = (_request, response) => response.setHeader('Content-Encoding', 'gzip').end();
    expect((await asking.ask(base)).text).to.equal('');
    expect((await asking.ask(base, { method: 'HEAD' })).text).to.equal('');
  });

  it('follows redirects, five at most, each of them guarded', async () => {
    reply = (request, response) => {
      const step = Number(request.url?.slice(1));
      if (step === 0) response.end('there');
      else response.writeHead(302, { Location: `/${step - 1}` }).end();
    };
    const answer = await asking.ask(`${base}/5`);
    expect(answer).to.include({ text: 'there', redirected: true, url: `${base}/0` });
    expect((await asking.failure(`${base}/6`)).message).to.equal(
      'More than 5 redirects are not followed',
    );
    expect((await asking.ask(`${base}/1`, { redirect: 'manual' })).status).to.equal(302);
    expect((await asking.failure(`${base}/1`, { redirect: 'error' })).code).to.equal(
      'ERR_REDIRECT',
    );
  });

  for (const location of [
    ...[
      'http://169.254.169.254/latest/meta-data/',
      'http://10.0.0.1/',
      'http://[::1]/',
      'http://0/',
    ],
    ...[
      'http://metadata.google.internal/',
      'http://[::ffff:169.254.169.254]/',
      'http://192.168.0.1/',
    ],
  ]) {
    it(`does not follow a redirect to ${location} but can show it`, async () => {
      reply = (_request, response) => response.writeHead(301, { Location: location }).end('moved');
      const { code, message } = await asking.failure(base);
      expect(code).to.equal('ERR_DESTINATION_REFUSED');
      expect(message).not.to.match(/\d|metadata/);
      const shown = await asking.ask(base, { redirect: 'manual' });
      expect(shown).to.include({ status: 301, text: 'moved' });
    });
  }

  it('reuses its connections, but never for another tenant', async () => {
    const own = await startHttp();
    opened.push(own);
    const url = `http://127.0.0.1:${own.port}/`;
    for (let count = 0; count < 5; count += 1) await asking.ask(url, {}, undefined, 'a');
    // The second may be asked for before the first is free again.
    const connections = own.connections();
    expect(connections).to.be.lessThan(3);
    await asking.ask(url, {}, undefined, 'b');
    expect(own.connections()).to.equal(connections + 1);
  });

  it('trusts the extra CA and nobody else, for the right name only', async () => {
    const ca = issueCertificate({ subject: 'Test CA', isCa: true });
    const leaf = issueCertificate({ subject: 'leaf', issuer: ca, names: ['pay.example.com'] });
    const secure = await startHttps({ key: leaf.key, cert: leaf.cert });
    const trusting = startAsking({ extraCa: [ca.cert] });
    opened.push(secure, trusting.fetches);
    const url = `https://pay.example.com:${secure.port}/`;
    expect((await trusting.ask(url)).text).to.equal('hello');
    expect(secure.serverNames).to.deep.equal(['pay.example.com']);
    expect((await asking.failure(url)).code).to.equal('ERR_TLS_FAILED');
    const wrongName = await trusting.failure(`https://other.example.com:${secure.port}/`);
    expect(wrongName.code).to.equal('ERR_TLS_FAILED');
    expect(secure.requests).to.have.length(1);
  });

  const TALK: [what: string, say: string, code: string][] = [
    ['garbage', 'I am no web server\r\n\r\n', 'HPE_INVALID_CONSTANT'],
    [
      'two lengths',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      'ECONNRESET',
    ],
    ['a body that is cut off', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc', 'ECONNRESET'],
    [
      'a chunk that is cut off',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab',
      'ECONNRESET',
    ],
    ['nothing', '', 'ECONNRESET'],
    ['a huge header', `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`, 'HPE_HEADER_OVERFLOW'],
    [
      'an upgrade',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      'ECONNRESET',
    ],
  ];
  for (const [what, say, code] of TALK) {
    it(`says so when a destination answers with ${what}`, async () => {
      const rude = await startTcp((socket) => socket.once('data', () => socket.end(say)));
      opened.push(rude);
      const error = await asking.failure(`http://127.0.0.1:${rude.port}/secret-4242`);
      expect(error.code).to.equal(code);
      expect(error.message).not.to.match(/4242|127|web server/);
    });
  }

  it('says so when a destination resets the connection', async () => {
    const rude = await startTcp((socket) => socket.once('data', () => socket.resetAndDestroy()));
    opened.push(rude);
    expect((await asking.failure(`http://127.0.0.1:${rude.port}/`)).code).to.equal('ECONNRESET');
    expect((await asking.failure('http://127.0.0.1:1/')).code).to.equal('ECONNREFUSED');
  });

  it('does not send a second request into an answer that goes on', async () => {
    const smuggler = await startTcp((socket) => {
      const one = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';
      socket.on('data', () => socket.write(`${one}ok${one}no`));
    });
    opened.push(smuggler);
    const url = `http://127.0.0.1:${smuggler.port}/`;
    expect((await asking.ask(url)).text).to.equal('ok');
    expect((await asking.ask(url)).text).to.equal('ok');
  });

  it('ends the request on the wire when nobody waits any more', async () => {
    const gone = Promise.withResolvers<void>();
    const controller = new AbortController();
    reply = (request) => {
      void once(request.socket, 'close').then(() => gone.resolve());
      controller.abort(new Error('over'));
    };
    await asking.failure(base, {}, controller.signal);
    await gone.promise;
    const before = destination.requests.length;
    expect((await asking.failure(base, {}, AbortSignal.abort())).code).to.equal(
      'ERR_REQUEST_FAILED',
    );
    expect(destination.requests).to.have.length(before);
  });

  it('ends what is under way or waits when it is closed', async () => {
    const closing = startAsking({ limits: { tenantRequestsMax: 1 } });
    reply = () => void closing.fetches.close();
    const both = await Promise.all([closing.failure(base), closing.failure(base)]);
    expect(both.map(({ code }) => code)).to.deep.equal(['ECONNABORTED', 'ECONNABORTED']);
    expect((await closing.failure(base)).code).to.equal('ECONNABORTED');
  });
});
