import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { encodeFrame, FrameReader, frameStream } from '../../../shared/sandbox/frames.ts';

function readInPieces(bytes: Buffer, sizes: readonly number[]): unknown[] {
  const reader = new FrameReader();
  const frames: unknown[] = [];
  let at = 0;
  for (let piece = 0; at < bytes.length; piece += 1) {
    const size = sizes[piece % sizes.length] ?? 1;
    frames.push(...reader.push(bytes.subarray(at, at + size)));
    at += size;
  }
  return frames;
}

describe('frames on a pipe', () => {
  it('come out as they went in, however the pipe cuts them', () => {
    const frame = fc.record({
      header: fc.record({ kind: fc.string(), id: fc.nat() }),
      body: fc.string({ unit: 'binary' }),
    });
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 6 }), sizes, (frames, cuts) => {
        const bytes = Buffer.concat(frames.map(({ header, body }) => encodeFrame(header, body)));
        expect(readInPieces(bytes, cuts)).to.deep.equal(frames);
      }),
    );
  });

  it('leave in one write for all of a turn', async () => {
    const pipe = new PassThrough();
    const chunks: Buffer[] = [];
    pipe.on('data', (chunk: Buffer) => chunks.push(chunk));
    const other = new PassThrough();
    const stream = frameStream(
      other,
      () => undefined,
      () => undefined,
    );
    const written = new Promise<Buffer>((resolve) => other.once('data', resolve));
    stream.send({ id: 1 }, 'a');
    stream.send({ id: 2 }, 'b');
    const frames = [...new FrameReader().push(await written)];
    expect(frames).to.deep.equal([
      { header: { id: 1 }, body: 'a' },
      { header: { id: 2 }, body: 'b' },
    ]);
    expect(chunks).to.deep.equal([]);
  });

  it('are encoded when the pipe takes them, not before', async () => {
    const pipe = new PassThrough({ highWaterMark: 1024 });
    const stream = frameStream(
      pipe,
      () => undefined,
      () => undefined,
    );
    // Both ways of the pipe are one here, so that it must be paused to be full.
    pipe.pause();
    const body = 'x'.repeat(100_000);
    for (let id = 1; id <= 50; id += 1) stream.send({ id }, body);
    await delay(20);
    expect(pipe.writableLength + pipe.readableLength).to.be.within(body.length, 4 * body.length);
    const reader = new FrameReader();
    const ids: unknown[] = [];
    for await (const chunk of pipe) {
      for (const { header } of reader.push(chunk)) ids.push((header as { id: number }).id);
      if (ids.length === 50) break;
    }
    expect(ids).to.deep.equal(Array.from({ length: 50 }, (_, index) => index + 1));
  });

  for (const [what, bytes] of [
    ['a length of 4 GiB', Buffer.from('ffffffff00000002', 'hex')],
    ['a header of more than 1 MiB', Buffer.from('0020000000100001', 'hex')],
    ['a header longer than its frame', Buffer.from('0000000800000009', 'hex')],
    ['a frame without room for its header length', Buffer.from('0000000000000000', 'hex')],
    [
      'a header that is no JSON',
      Buffer.concat([Buffer.from('0000000500000001', 'hex'), Buffer.from('x')]),
    ],
  ] as const) {
    it(`end the stream, once: ${what}`, async () => {
      const pipe = new PassThrough();
      const seen: unknown[] = [];
      let broken = 0;
      frameStream(
        pipe,
        (header) => seen.push(header),
        () => {
          broken += 1;
        },
      );
      pipe.write(bytes);
      pipe.end(encodeFrame({ id: 1 }));
      await new Promise((resolve) => pipe.once('end', resolve));
      expect({ seen, broken }).to.deep.equal({ seen: [], broken: 1 });
    });
  }
});
