/** Which texts are looked for in an answer, and when they are too much. */
import { expect } from 'chai';
import {
  BROUGHT_OUT_BYTES_MAX,
  BROUGHT_OUT_TEXTS_MAX,
  BroughtOut,
} from '../../../data-plane/proxy/brought-out.ts';
import { maskText } from '../../../data-plane/proxy/tripwire.ts';

const masked = (broughtOut: BroughtOut, text: string): string =>
  maskText(broughtOut.sought().needles, Buffer.from(text).toString('latin1')).text;

describe('what was brought out for a request', () => {
  it('is every text and number inside, but no short one', () => {
    const broughtOut = new BroughtOut();
    broughtOut.add({ a: ['first-value', 12345678], b: { c: 'short', d: null, e: true } });
    expect(broughtOut.isEmpty).to.equal(false);
    const text = 'first-value 12345678 short null true';
    expect(masked(broughtOut, text)).to.equal(`${'*'.repeat(11)} ${'*'.repeat(8)} short null true`);
    const none = new BroughtOut();
    none.add(['short', 1, null]);
    expect(none.isEmpty).to.equal(true);
  });

  it('is looked for as JSON escapes it, too, and beyond ASCII', () => {
    const secret = 'a"b\\c\n\u00e9\u20ac-end';
    const broughtOut = new BroughtOut();
    broughtOut.add({ secret });
    expect(masked(broughtOut, JSON.stringify({ secret }))).to.match(/^\{"secret":"\*+"\}$/);
    expect(masked(broughtOut, secret)).to.match(/^\*+$/);
  });

  const secret = 'https://b\u00fccher.example/\ud83d\udd11/12345678';
  const spellings: Record<string, string> = {
    'PHP by default': 'https:\\/\\/b\\u00fccher.example\\/\\ud83d\\udd11\\/12345678',
    Python: 'https://b\\u00fccher.example/\\ud83d\\udd11/12345678',
    'PHP with JSON_UNESCAPED_UNICODE': secret.replaceAll('/', '\\/'),
    '.NET': 'https://b\\u00FCcher.example/\\uD83D\\uDD11/12345678',
  };
  for (const [printer, spelled] of Object.entries(spellings)) {
    it(`is looked for as ${printer} escapes it`, () => {
      expect(JSON.parse(`"${spelled}"`)).to.equal(secret);
      const broughtOut = new BroughtOut();
      broughtOut.add(secret);
      expect(masked(broughtOut, `{"url":"${spelled}"}`)).to.match(/^\{"url":"\*+"\}$/);
    });
  }

  it('is looked for in other spellings only as far as there is room for them', () => {
    const broughtOut = new BroughtOut();
    const long = `${'/'.repeat(BROUGHT_OUT_BYTES_MAX / 2)}-long`;
    broughtOut.add([long, 'caf\u00e9/short']);
    expect(broughtOut.isTooMuch).to.equal(false);
    expect(masked(broughtOut, long)).to.match(/^\*+$/);
    expect(masked(broughtOut, 'caf\u00e9/short')).to.match(/^\*+$/);
    const spelled = long.replaceAll('/', '\\/');
    expect(masked(broughtOut, spelled)).to.equal(spelled);
  });

  it('is too much above a number of texts or bytes, and then nothing is kept', () => {
    const numbers = Array.from({ length: BROUGHT_OUT_TEXTS_MAX }, (_, index) => 10_000_000 + index);
    const many = new BroughtOut();
    many.add(numbers);
    expect(many.isTooMuch).to.equal(false);
    many.add(numbers);
    expect(many.isTooMuch).to.equal(false);
    many.add(99_999_999);
    expect(many.isTooMuch).to.equal(true);
    const long = new BroughtOut();
    long.add('x'.repeat(BROUGHT_OUT_BYTES_MAX));
    expect([long.isTooMuch, long.isEmpty]).to.deep.equal([false, false]);
    long.add('one-more');
    expect([long.isTooMuch, long.isEmpty]).to.deep.equal([true, false]);
    const escaped = new BroughtOut();
    escaped.add('"'.repeat(BROUGHT_OUT_BYTES_MAX / 2));
    expect(escaped.isTooMuch).to.equal(true);
    const foreseen = new BroughtOut();
    foreseen.addTooMuch();
    expect([foreseen.isTooMuch, foreseen.isEmpty]).to.deep.equal([true, false]);
  });
});
