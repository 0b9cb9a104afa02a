/** Answers that are read whole for a transform: decoded, bounded, and never half of one. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { DestinationBody } from '../../../data-plane/proxy/destination-body.ts';
import { readWholeAnswer } from '../../../data-plane/proxy/whole-answer.ts';
import { BodyRoom, UNCOUNTED_BYTES } from '../../../shared/http/body-room.ts';

const MIB = 1024 * 1024;

/** A body of these pieces, and whether its connection was closed on our side. */
function bodyOf(...pieces: Buffer[]): { body: DestinationBody; isAborted(): boolean } {
  let aborted = false;
  const body = new DestinationBody({
    pause: () => undefined,
    resume: () => undefined,
    abort: () => {
      aborted = true;
    },
  });
  setImmediate(() => {
    for (const piece of pieces) body.push(piece);
    body.end();
  });
  return { body, isAborted: () => aborted };
}

/** A body that gets so many bytes every 10 ms, until its connection is closed. */
function drippingBody(bytes: number): { body: DestinationBody; isAborted(): boolean } {
  let aborted = false;
  const timer = setInterval(() => body.push(Buffer.alloc(bytes)), 10);
  const body = new DestinationBody({
    pause: () => undefined,
    resume: () => undefined,
    abort: () => {
      aborted = true;
      clearInterval(timer);
    },
  });
  return { body, isAborted: () => aborted };
}

/** With a Content-Encoding header for each of `codings` that there is. */
function withCodings(body: DestinationBody, ...codings: (string | undefined)[]) {
  const given = codings.filter((coding) => coding !== undefined);
  return { body, headers: given.flatMap((coding) => ['Content-Encoding', coding]) };
}

async function statusOf(reading: Promise<Buffer>): Promise<unknown> {
  const error: unknown = await reading.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof Error ? Reflect.get(error, 'status') : undefined;
}

describe('a whole answer', () => {
  it('is decoded by what its Content-Encoding says', async () => {
    const text = Buffer.from('hello '.repeat(100));
    const coded: [string | undefined, Buffer][] = [
      [undefined, text],
      ['identity', text],
      ['gzip', gzipSync(text)],
      ['X-GZIP', gzipSync(text)],
      ['br', brotliCompressSync(text)],
      ['deflate', deflateSync(text)],
      ['deflate', deflateRawSync(text)],
    ];
    for (const [coding, bytes] of coded) {
      const { body } = bodyOf(bytes.subarray(0, 5), bytes.subarray(5));
      expect((await readWholeAnswer(withCodings(body, coding))).equals(text), coding).to.equal(
        true,
      );
    }
    expect(await readWholeAnswer(withCodings(bodyOf().body, 'gzip'))).to.have.length(0);
  });

  it('is 502 when it is too large, as it comes or decoded, and its connection is closed', async () => {
    const zeros = Buffer.alloc(11 * MIB);
    const plain = bodyOf(zeros.subarray(0, 6 * MIB), zeros.subarray(6 * MIB));
    expect(await statusOf(readWholeAnswer(withCodings(plain.body)))).to.equal(502);
    expect(plain.isAborted()).to.equal(true);
    const bombs = {
      br: brotliCompressSync(zeros),
      gzip: gzipSync(zeros),
      deflate: deflateSync(zeros),
    };
    for (const [coding, bomb] of Object.entries(bombs)) {
      expect(
        await statusOf(readWholeAnswer(withCodings(bodyOf(bomb).body, coding))),
        coding,
      ).to.equal(502);
    }
  });

  it('is 502 when it is not what its coding says, or the coding is not served', async () => {
    const bytes = Buffer.from('no coding at all');
    for (const coding of ['gzip', 'br', 'deflate', 'zstd', 'gzip, br', 'constructor']) {
      expect(
        await statusOf(readWholeAnswer(withCodings(bodyOf(bytes).body, coding))),
        coding,
      ).to.equal(502);
    }
    const cut = gzipSync('hello').subarray(0, 15);
    expect(await statusOf(readWholeAnswer(withCodings(bodyOf(cut).body, 'gzip')))).to.equal(502);
  });

  it('is coded as all of its headers say, not as the first one does', async () => {
    const text = Buffer.from('hello');
    const { body } = bodyOf(gzipSync(text));
    const whole = await readWholeAnswer(withCodings(body, 'identity', 'gzip, '));
    expect(whole.toString()).to.equal('hello');
    const twice = bodyOf(gzipSync(gzipSync(text)));
    expect(await statusOf(readWholeAnswer(withCodings(twice.body, 'gzip', 'gzip')))).to.equal(502);
  });

  it('is 408 when it does not come on, and its connection is closed', async () => {
    // 1 KiB would take 100 ms.
    const { body, isAborted } = drippingBody(100);
    expect(await statusOf(readWholeAnswer(withCodings(body), 30))).to.equal(408);
    expect(isAborted()).to.equal(true);
  });

  it('is 408 when it comes too slowly for too long', async () => {
    const { body, isAborted } = drippingBody(2_048);
    expect(await statusOf(readWholeAnswer(withCodings(body), 40))).to.equal(408);
    expect(isAborted()).to.equal(true);
  });

  it('is 502 when it breaks off', async () => {
    const { body } = bodyOf();
    body.push(Buffer.from('half'));
    const reading = readWholeAnswer(withCodings(body));
    body.fail(Object.assign(new Error('gone'), { code: 'UND_ERR_SOCKET' }));
    expect(await statusOf(reading)).to.equal(502);
  });

  it('is refused while others take all the room, which each gives back', async () => {
    const large = Buffer.alloc(UNCOUNTED_BYTES + 100_000);
    const half = large.subarray(0, large.length / 2);
    // One of them, and a half.
    const room = new BodyRoom(150_000);
    const read = (body: DestinationBody) => readWholeAnswer(withCodings(body), undefined, room);
    const none = (): void => undefined;
    const slow = new DestinationBody({ pause: none, resume: none, abort: none });
    const first = read(slow);
    for (const piece of [half, half]) slow.push(piece);
    const second = bodyOf(half, half);
    expect(await statusOf(read(second.body))).to.equal(503);
    expect(second.isAborted()).to.equal(true);
    const small = bodyOf(Buffer.alloc(10), Buffer.alloc(10));
    expect(await read(small.body)).to.have.length(20);
    slow.fail(new Error('reset'));
    expect(await first.catch(() => 'failed')).to.equal('failed');
    const third = bodyOf(half, half);
    expect(await read(third.body)).to.have.length(large.length);
    // Nothing is left of any of them: there is room for one more again, and no more than that.
    const fourth = bodyOf(half, half);
    expect(await read(fourth.body)).to.have.length(large.length);
  });
});
