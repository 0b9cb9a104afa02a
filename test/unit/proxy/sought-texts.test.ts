/** The first look at an answer: it may say "perhaps", but "none" is true. */
import { expect } from 'chai';
import fc from 'fast-check';
import { SoughtTexts } from '../../../data-plane/proxy/sought-texts.ts';

const KIB = 1024;
const sought = (...texts: string[]): SoughtTexts =>
  new SoughtTexts(texts.map((text) => Buffer.from(text)));

describe('the first look for texts in an answer', () => {
  it('says of a usual answer what a plain search says', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', '"', 'é'),
      minLength: 1,
      maxLength: 6,
    });
    const answer = fc.string({ unit: fc.constantFrom('a', 'b', '"', 'é'), maxLength: 40 });
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 16 }), answer, (texts, whole) => {
        const isThere = texts.some((one) => whole.includes(one));
        expect(sought(...texts).areMissingFrom(Buffer.from(whole))).to.equal(!isThere);
      }),
    );
  });

  it('finds a text at both ends, and is not sure of what is cut', () => {
    const texts = sought('4242424242424242');
    for (const whole of ['4242424242424242 end', 'begin 4242424242424242']) {
      expect(texts.areMissingFrom(Buffer.from(whole))).to.equal(false);
    }
    expect(texts.areMissingFrom(Buffer.from('424242424242424'))).to.equal(true);
  });

  it('leaves what would take long to the search that is never slow', () => {
    const many = Array.from({ length: 17 }, (_, index) => `text-${index}-of-many`);
    expect(sought(...many).areMissingFrom(Buffer.from('nothing'))).to.equal(false);
    expect(sought(...many.slice(1)).areMissingFrom(Buffer.from('nothing'))).to.equal(true);
    expect(sought('x'.repeat(65)).areMissingFrom(Buffer.from('nothing'))).to.equal(false);
    expect(sought('x'.repeat(64)).areMissingFrom(Buffer.from('nothing'))).to.equal(true);
    expect(sought('a-text').areMissingFrom(Buffer.alloc(16 * KIB + 1))).to.equal(false);
    expect(sought('a-text').areMissingFrom(Buffer.alloc(16 * KIB))).to.equal(true);
  });
});
