import { expect } from 'chai';
import { ApiError } from '../../../shared/errors.ts';
import { foldMetadataValue, validateMetadata } from '../../../shared/tokens/metadata.ts';

function refusal(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.status).to.equal(400);
    expect(error.errors).to.have.all.keys('metadata');
    return error.errors?.metadata?.join() ?? '';
  }
  throw new Error('the metadata was accepted');
}

const keys = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));

describe('validateMetadata', () => {
  it('keeps any key, an empty value and an empty map', () => {
    const text =
      '{"a.b":"1","a[0]":"2"," x y ":"3","😀":"4","__proto__":"5","constructor":"6","k":""}';
    expect(validateMetadata({})).to.deep.equal({});
    expect(JSON.stringify(validateMetadata(JSON.parse(text)))).to.equal(text);
  });

  it('refuses what is not a map of strings', () => {
    for (const value of [
      'x',
      1,
      true,
      [],
      [['a', 'b']],
      { a: 1 },
      { a: true },
      { a: {} },
      { a: [] },
    ]) {
      expect(
        refusal(() => validateMetadata(value)),
        JSON.stringify(value),
      ).to.match(/Deserialization/);
    }
  });

  it('refuses null, as the map and as a value', () => {
    expect(refusal(() => validateMetadata(null))).to.match(/Deserialization/);
    expect(refusal(() => validateMetadata({ a: null }))).to.match(/Deserialization/);
  });

  it('bounds keys and lengths, in UTF-16 code units', () => {
    expect(validateMetadata(keys(50))).to.deep.equal(keys(50));
    expect(refusal(() => validateMetadata(keys(51)))).to.match(/50 keys/);
    expect(validateMetadata({ ['k'.repeat(100)]: 'v'.repeat(500) })).to.be.an('object');
    expect(refusal(() => validateMetadata({ ['k'.repeat(101)]: 'v' }))).to.match(/100 characters/);
    expect(refusal(() => validateMetadata({ '': 'v' }))).to.match(/1 to 100/);
    expect(refusal(() => validateMetadata({ k: 'v'.repeat(501) }))).to.match(/500 characters/);
    expect(refusal(() => validateMetadata({ k: '😀'.repeat(251) }))).to.match(/500 characters/);
    expect(refusal(() => validateMetadata({ k: 'v'.repeat(1_000_000) }))).to.match(
      /500 characters/,
    );
  });

  it('refuses what Postgres text cannot hold', () => {
    for (const bad of ['a\0', '\ud800', '\udc00x']) {
      expect(refusal(() => validateMetadata({ k: bad }))).to.match(/NUL/);
      expect(refusal(() => validateMetadata({ [bad]: 'v' }))).to.match(/NUL/);
    }
  });

  it('never repeats keys or values', () => {
    expect(refusal(() => validateMetadata({ 'pan-4242': 4242 }))).to.not.match(/4242/);
  });
});

describe('foldMetadataValue', () => {
  for (const [one, other] of [
    ['Order-77', 'oRDER-77'],
    ['ÄÖÜ', 'äöü'],
    ['Straße', 'STRASSE'],
    ['ẞ', 'ß'],
    ['ΟΔΟΣ', 'οδος'],
    ['οδοσ', 'οδος'],
    ['ДА', 'да'],
    ['\u212a', 'k'],
    ['', ''],
  ] as const) {
    it(`treats ${one} and ${other} alike`, () => {
      expect(foldMetadataValue(one)).to.equal(foldMetadataValue(other));
    });
  }

  for (const [one, other] of [
    // Composed and decomposed, Latin and Cyrillic, with and without space or width.
    ['\u00e9', 'e\u0301'],
    ['a', '\u0430'],
    ['a', 'a '],
    ['a', '\uff41'],
    ['e', 'é'],
  ] as const) {
    it(`keeps ${JSON.stringify(one)} and ${JSON.stringify(other)} apart`, () => {
      expect(foldMetadataValue(one)).to.not.equal(foldMetadataValue(other));
    });
  }

  it('does not depend on how a letter was written or how often it is folded', () => {
    for (let code = 0; code <= 0xffff; code += 1) {
      if (code >= 0xd800 && code <= 0xdfff) continue;
      const letter = String.fromCharCode(code);
      const folded = foldMetadataValue(letter);
      const same = [letter.toLowerCase(), letter.toUpperCase(), folded].every(
        (form) => foldMetadataValue(form) === folded,
      );
      if (!same) expect.fail(`U+${code.toString(16)}`);
    }
  });
});
