/** The tripwire on bytes: it sees what a plain search of the whole sees, however the bytes are cut. */
import { expect } from 'chai';
import fc from 'fast-check';
import { Needles } from '../../../data-plane/proxy/needles.ts';
import { LeakSearch, MaskingStream, maskText } from '../../../data-plane/proxy/tripwire.ts';

const MIB = 1024 * 1024;

const needlesOf = (texts: readonly string[]): Needles =>
  new Needles(texts.map((text) => Buffer.from(text)));

interface Seen {
  readonly text: string;
  readonly count: number;
}

/** Masked piece by piece. */
function maskPieces(texts: readonly string[], pieces: readonly Buffer[]): Seen {
  const stream = new MaskingStream(needlesOf(texts));
  // As connections do: the bytes of a piece are overwritten as soon as it was taken.
  const out = pieces.map((piece) => {
    const buffer = Buffer.from(piece);
    const passed = Buffer.from(stream.push(buffer));
    buffer.fill('!');
    return passed;
  });
  const text = Buffer.concat([...out, stream.end()]).toString('latin1');
  return { text, count: stream.count };
}

/** One search per text: places are where any of them lies, those that overlap together. */
function plainly(texts: readonly string[], whole: string): Seen {
  const found: [number, number][] = [];
  for (const text of texts) {
    for (let at = whole.indexOf(text); at >= 0; at = whole.indexOf(text, at + 1)) {
      found.push([at, at + text.length]);
    }
  }
  found.sort(([a], [b]) => a - b);
  const letters = [...whole];
  let count = 0;
  let lastEnd = 0;
  for (const [start, end] of found) {
    if (start >= lastEnd) count += 1;
    lastEnd = Math.max(lastEnd, end);
    letters.fill('*', start, end);
  }
  return { text: letters.join(''), count };
}

describe('the leak tripwire', () => {
  it('masks values with stars of the same number of bytes, across pieces', () => {
    const pieces = ['{"a":"4242', '42424242', '4242","b":1}'].map((one) => Buffer.from(one));
    expect(maskPieces(['4242424242424242'], pieces)).to.deep.equal({
      ...{ text: `{"a":"${'*'.repeat(16)}","b":1}`, count: 1 },
    });
  });

  it('leaves headers without values as they are', () => {
    const needles = needlesOf(['secret-value']);
    expect(maskText(needles, 'caf\xe9')).to.deep.equal({ text: 'caf\xe9', count: 0 });
    expect(maskText(needles, 'x=secret-value')).to.deep.equal({
      ...{ text: `x=${'*'.repeat(12)}`, count: 1 },
    });
  });

  it('sees what a plain search sees, however a body is cut', () => {
    const letter = fc.constantFrom('a', 'b');
    const texts = fc.array(fc.string({ unit: letter, minLength: 1, maxLength: 6 }), {
      ...{ minLength: 1, maxLength: 5 },
    });
    const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 7 }));
    fc.assert(
      fc.property(texts, pieces, (some, cut) => {
        const bytes = cut.map((piece) => Buffer.from(piece));
        const expected = plainly(some, cut.join(''));
        expect(maskPieces(some, bytes)).to.deep.equal(expected);
        const search = new LeakSearch(needlesOf(some));
        for (const piece of bytes) search.look(piece);
        expect(search.count).to.equal(expected.count);
      }),
      { numRuns: 5_000 },
    );
  });

  it('keeps nothing per place: 900 texts that overlap at every byte of 10 MiB', () => {
    // One range for each of them at each byte would be 9 billion.
    const needles = needlesOf(Array.from({ length: 900 }, (_, index) => 'a'.repeat(8 + index)));
    const body = Buffer.alloc(MIB, 'a');
    const search = new LeakSearch(needles);
    const stream = new MaskingStream(needles);
    let stars = 0;
    const countStars = (bytes: Buffer): void => {
      for (const byte of bytes) if (byte === 0x2a) stars += 1;
    };
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < 10; index += 1) {
      search.look(body);
      countStars(stream.push(body));
    }
    countStars(stream.end());
    expect([search.count, stream.count, stars]).to.deep.equal([1, 1, 10 * MIB]);
    expect(process.memoryUsage().heapUsed - before).to.be.lessThan(32 * MIB);
  });

  it('holds back many small pieces of a long text at the cost of its bytes', () => {
    const text = Buffer.from(Array.from({ length: 50_000 }, (_, index) => `${index},`).join(''));
    const stream = new MaskingStream(new Needles([text]));
    // All but the last byte: none of it may go out before it is sure that the text does not follow.
    let out = 0;
    for (let at = 0; at < text.length - 1; at += 1) {
      out += stream.push(text.subarray(at, at + 1)).length;
    }
    expect(out).to.equal(0);
    const rest = Buffer.concat([stream.push(Buffer.from('!')), stream.end()]);
    expect(rest.toString()).to.equal(`${text.subarray(0, -1)}!`);
    expect(stream.count).to.equal(0);
  });
});
