import { expect } from 'chai';
import fc from 'fast-check';
import { tokenIdProblem } from '../../../shared/tokens/token-id.ts';

const FORBIDDEN = [...'#/\\+?[]|&=%<>{}^'];

describe('tokenIdProblem', () => {
  for (const id of [
    'abc',
    'a'.repeat(400),
    '815029c2-29ec-4c5b-9d4f-111111111111',
    'order 77, first@shop.example',
    '...',
    'a.b:c;d!$*()~`\'"_-',
    '日本語',
    'äöü',
    // Two code units each: one emoji is too short, two are not.
    '😀😀',
    '👍🏽',
    '❤️ me',
    '4242424242424242',
    '__proto__',
  ]) {
    it(`accepts ${id.slice(0, 40)}`, () => {
      expect(tokenIdProblem(id)).to.equal(undefined);
    });
  }

  it('counts UTF-16 code units: 3 to 400', () => {
    for (const id of ['', 'ab', '.', '..', '😀', 'a'.repeat(401), '😀'.repeat(201)]) {
      expect(tokenIdProblem(id), id).to.match(/3 to 400 characters/);
    }
    expect(tokenIdProblem('😀'.repeat(200))).to.equal(undefined);
  });

  it('refuses the forbidden characters at every place', () => {
    for (const character of FORBIDDEN) {
      for (const id of [
        `${character}abc`,
        `a${character}bc`,
        `abc${character}`,
        `ä${character}ö`,
      ]) {
        expect(tokenIdProblem(id), id).to.match(/must not contain/);
      }
    }
  });

  it('refuses what cannot be seen', () => {
    const unseen = [
      '\0',
      '\t',
      '\n',
      '\r',
      '\x1b',
      '\x7f',
      '\x85',
      '\u00ad',
      '\u200b',
      '\u200d',
      '\u200e',
      '\u200f',
      '\u2028',
      '\u2029',
      '\u202e',
      '\u2066',
      '\ufeff',
      '\u{e0041}',
    ];
    for (const character of unseen) {
      expect(tokenIdProblem(`ab${character}cd`), codeName(character)).to.match(/must not contain/);
    }
    expect(tokenIdProblem('👨\u200d👩\u200d👧')).to.match(/must not contain/);
  });

  it('refuses halves of surrogate pairs', () => {
    for (const id of ['ab\ud83d', '\ude00ab', 'a\ude00\ud83db']) {
      expect(tokenIdProblem(id)).to.match(/must not contain/);
    }
  });

  it('refuses white space at the ends, keeps it inside', () => {
    for (const id of [' abc', 'abc ', '\u00a0abc', 'abc\u3000', '   ']) {
      expect(tokenIdProblem(id)).to.match(/white space/);
    }
    expect(tokenIdProblem('a b  c')).to.equal(undefined);
  });

  it('never repeats the id', () => {
    expect(tokenIdProblem('4242/4242')).to.not.include('4242');
  });

  it('accepts only ids that pass through a path and an expression unharmed', () => {
    const character = fc.constantFrom(
      ...FORBIDDEN,
      'a',
      ' ',
      'é',
      '😀',
      '\u200b',
      '\ud800',
      '\n',
      '.',
    );
    fc.assert(
      fc.property(fc.array(character, { maxLength: 6 }), (characters) => {
        const id = characters.join('');
        if (tokenIdProblem(id) !== undefined) return;
        expect(decodeURIComponent(encodeURIComponent(id))).to.equal(id);
        expect(new URL(encodeURIComponent(id), 'http://localhost/tokens/').pathname).to.equal(
          `/tokens/${encodeURIComponent(id)}`,
        );
        expect(`{{ ${id} | last4 }}`.slice(2).split('|')[0]?.trim()).to.equal(id);
      }),
      { numRuns: 2000 },
    );
  });
});

function codeName(character: string): string {
  return `U+${character.codePointAt(0)?.toString(16)}`;
}
