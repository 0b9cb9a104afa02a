import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect } from 'chai';
import { ApiError } from '../../../shared/errors.ts';
import { readBody } from '../../../shared/http/read-body.ts';
import { exchange, type RawAnswer } from '../../support/raw-http.ts';

const LIMIT_BYTES = 1024;

/** Answers with the body it read, or with the status of the error. */
async function echo(
  req: IncomingMessage,
): Promise<{ status: number; body: Buffer; close: boolean }> {
  try {
    const contentEncoding = req.headers['content-encoding'];
    const body = await readBody(req, { limitBytes: LIMIT_BYTES, contentEncoding });
    return { status: 200, body, close: false };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const close = error.headers?.connection === 'close';
    return { status: error.status, body: Buffer.from(error.code), close };
  }
}

const request = (headers: string[], body: string | Buffer = ''): Buffer =>
  Buffer.concat([
    Buffer.from(['POST / HTTP/1.1', 'Host: a', ...headers, '', ''].join('\r\n')),
    Buffer.from(body),
  ]);

const sized = (body: Buffer | string, ...headers: string[]): Buffer =>
  request([...headers, `Content-Length: ${body.length}`], body);

/** `bytes` cut into chunks of `size`, as a chunked body (RFC 9112 section 7.1). */
function chunked(bytes: Buffer, size: number, ...headers: string[]): Buffer {
  const parts: Buffer[] = [];
  for (let start = 0; start < bytes.length; start += size) {
    const part = bytes.subarray(start, start + size);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  parts.push(Buffer.from('0\r\n\r\n'));
  return request([...headers, 'Transfer-Encoding: chunked'], Buffer.concat(parts));
}

describe('readBody', () => {
  let server: Server;
  let port: number;
  /** What each request ended with, also those whose client is gone. */
  let outcomes: Promise<number>[];
  /** Reading starts in a later turn, as behind the data plane's queue. */
  let later = false;

  before(async () => {
    server = createServer((req, res) => {
      const start = () => {
        const outcome = echo(req);
        outcomes.push(outcome.then(({ status }) => status));
        outcome.then(({ status, body, close }) => {
          const headers = close ? { connection: 'close' } : {};
          res.writeHead(status, { ...headers, 'content-length': body.length });
          res.end(body);
        });
      };
      if (later) setImmediate(start);
      else start();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });

  beforeEach(() => {
    outcomes = [];
    later = false;
  });

  after((done) => {
    server.close(done);
    server.closeAllConnections();
  });

  const answerTo = async (bytes: Buffer): Promise<RawAnswer | undefined> =>
    (await exchange(port, bytes, 1)).answers[0];

  for (const turn of ['at once', 'a turn later']) {
    describe(`started ${turn}`, () => {
      beforeEach(() => {
        later = turn === 'a turn later';
      });

      it('gives an empty buffer when there is no body', async () => {
        expect(await answerTo(request([]))).to.include({ status: 200, body: '' });
        expect(await answerTo(sized(''))).to.include({ status: 200, body: '' });
        expect(await answerTo(chunked(Buffer.alloc(0), 1))).to.include({ status: 200, body: '' });
      });

      it('reads a body in one piece and in many', async () => {
        const body = Buffer.alloc(LIMIT_BYTES, 'x');
        for (const bytes of [sized(body), chunked(body, LIMIT_BYTES), chunked(body, 7)]) {
          expect(await answerTo(bytes)).to.include({ status: 200, body: body.toString() });
        }
      });

      it('answers 413 to one byte more, announced or not, and closes', async () => {
        const body = Buffer.alloc(LIMIT_BYTES + 1, 'x');
        for (const bytes of [sized(body), chunked(body, 100), chunked(body, body.length)]) {
          const { answers, closed } = await exchange(port, bytes);
          expect(answers.map(({ status }) => status)).to.deep.equal([413]);
          expect(closed).to.equal(true);
        }
      });

      it('keeps two requests on one connection apart', async () => {
        const bytes = Buffer.concat([sized('one'), chunked(Buffer.from('two'), 1), sized('3')]);
        const { answers } = await exchange(port, bytes, 3);
        expect(answers.map(({ body }) => body)).to.deep.equal(['one', 'two', '3']);
      });
    });
  }

  it('lets a client that sends a far too large body see its 413', async () => {
    const { answers } = await exchange(port, sized(Buffer.alloc(4 * 1024 * 1024)));
    expect(answers.map(({ status }) => status)).to.deep.equal([413]);
  });

  it('answers 413 at once to a client that waits for 100', async () => {
    const headers = ['Expect: 100-continue', 'Content-Length: 4096'];
    server.once('checkContinue', (req, res) => {
      echo(req).then(({ status }) => {
        res.writeHead(status, { connection: 'close', 'content-length': 0 }).end();
      });
    });
    const { answers } = await exchange(port, request(headers));
    expect(answers.map(({ status }) => status)).to.deep.equal([413]);
  });

  it('ends when the client goes away in the middle', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(request(['Content-Length: 100'], 'only this'));
      });
      socket.on('error', () => undefined);
      server.once('request', () => {
        socket.destroy();
        resolve();
      });
    });
    expect(await Promise.all(outcomes)).to.deep.equal([400]);
  });

  describe('Content-Encoding', () => {
    const text = 'a body that is compressed'.repeat(10);
    const codings: [string, (bytes: Buffer) => Buffer][] = [
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
      ['zstd', zstdCompressSync],
    ];

    for (const [coding, compress] of codings) {
      const header = `Content-Encoding: ${coding}`;

      it(`decodes ${coding}`, async () => {
        const packed = compress(Buffer.from(text));
        expect(await answerTo(sized(packed, header))).to.include({ status: 200, body: text });
        expect(await answerTo(chunked(packed, 5, header))).to.include({ body: text });
      });

      it(`answers 413 to a ${coding} bomb`, async () => {
        const bomb = compress(Buffer.alloc(LIMIT_BYTES * 100));
        expect(bomb.length).to.be.below(LIMIT_BYTES);
        expect(await answerTo(sized(bomb, header))).to.include({ status: 413 });
      });

      it(`decodes ${coding} up to the limit and not one byte over it`, async () => {
        const fits = compress(Buffer.alloc(LIMIT_BYTES, 'x'));
        const over = compress(Buffer.alloc(LIMIT_BYTES + 1, 'x'));
        expect(await answerTo(sized(fits, header))).to.include({ status: 200 });
        expect(await answerTo(sized(over, header))).to.include({ status: 413 });
      });

      it(`answers 400 to broken, truncated and extended ${coding}`, async () => {
        const packed = compress(Buffer.from(text));
        const extended = Buffer.concat([packed, Buffer.from('tail')]);
        for (const bytes of [Buffer.from('not packed'), packed.subarray(0, -3), extended]) {
          expect(await answerTo(sized(bytes, header))).to.include({ status: 400 });
        }
      });
    }

    it('passes identity', async () => {
      const answer = await answerTo(sized('x', 'Content-Encoding: identity'));
      expect(answer).to.include({ status: 200, body: 'x' });
    });

    for (const coding of ['gzip, gzip', 'deflate', 'compress', 'gzip;q=1', 'x']) {
      it(`answers 415 to ${coding}`, async () => {
        const packed = gzipSync(gzipSync('x'));
        const answer = await answerTo(sized(packed, `Content-Encoding: ${coding}`));
        expect(answer).to.include({ status: 415 });
      });
    }

    it('refuses a zstd window that would take 128 MiB to open', async () => {
      // Frame header: magic, no single segment, window descriptor 27 << 3 → 2^(10+17) bytes.
      const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x01, 0x00, 0x00]);
      const answer = await answerTo(sized(frame, 'Content-Encoding: zstd'));
      expect(answer).to.include({ status: 400 });
    });
  });
});
