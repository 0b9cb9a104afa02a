/** The tripwire on bytes: it sees what a plain search of the whole sees, however the bytes are cut. */
import { expect } from 'chai';
import fc from 'fast-check';
import { MaskingStream, Needles } from '../../../data-plane/proxy/tripwire.ts';

/** Masked piece by piece. */
function maskPieces(secrets: string[], pieces: Buffer[]): { text: string; count: number } {
  const stream = new MaskingStream(new Needles(secrets));
  const out = pieces.map((piece) => stream.push(piece));
  const text = Buffer.concat([...out, stream.end()]).toString('latin1');
  return { text, count: stream.count };
}

describe('the leak tripwire', () => {
  it('masks values with stars of the same number of bytes, across pieces', () => {
    const pieces = ['{"a":"4242', '42424242', '4242","b":1}'].map((one) => Buffer.from(one));
    expect(maskPieces(['4242424242424242'], pieces)).to.deep.equal({
      ...{ text: `{"a":"${'*'.repeat(16)}","b":1}`, count: 1 },
    });
  });

  it('finds what JSON escapes, and bytes beyond ASCII', () => {
    const secret = 'a"b\\c\n\u00e9\u20ac-end';
    const json = Buffer.from(JSON.stringify({ secret }));
    const { text, count } = maskPieces([secret], [json]);
    expect(count).to.equal(1);
    expect(text).to.match(/^\{"secret":"\*+"\}$/);
    expect(text).to.have.length(json.length);
  });

  it('leaves headers without values as they are', () => {
    const needles = new Needles(['secret-value']);
    expect(needles.maskText('caf\xe9')).to.deep.equal({ text: 'caf\xe9', count: 0 });
    expect(needles.maskText('x=secret-value')).to.deep.equal({
      ...{ text: `x=${'*'.repeat(12)}`, count: 1 },
    });
  });

  it('does not depend on how a body is cut', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 2, maxLength: 5 });
    const secrets = fc.array(letters, { minLength: 1, maxLength: 3 });
    const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 }));
    fc.assert(
      fc.property(secrets, pieces, (some, cut) => {
        const whole = Buffer.from(cut.join(''));
        const { bytes, count } = new Needles(some).mask(whole);
        const masked = maskPieces(
          some,
          cut.map((piece) => Buffer.from(piece)),
        );
        expect(masked).to.deep.equal({ text: bytes.toString('latin1'), count });
      }),
      { numRuns: 5_000 },
    );
  });
});
