import { expect } from 'chai';
import fc from 'fast-check';
import { ApiError } from '../../../shared/errors.ts';
import { parseQuery } from '../../../shared/http/query.ts';

const pairs = (raw: string) => {
  const { names, values } = parseQuery(raw);
  return names.map((name, index) => [name, values[index]]);
};

describe('parseQuery', () => {
  it('keeps repeated names in order', () => {
    const query = parseQuery('id=a&page=2&id=b');
    expect(query.all('id')).to.deep.equal(['a', 'b']);
    expect(query.get('id')).to.equal('a');
    expect(query.get('size')).to.equal(undefined);
    expect(query.has('page')).to.equal(true);
  });

  it('reads plus as a space and decodes once', () => {
    expect(pairs('a+b=c+d%2B&e=%2525')).to.deep.equal([
      ['a b', 'c d+'],
      ['e', '%25'],
    ]);
  });

  it('skips empty parts and gives a part without = an empty value', () => {
    expect(pairs('&&a&b=&=c&d=e=f&')).to.deep.equal([
      ['a', ''],
      ['b', ''],
      ['', 'c'],
      ['d', 'e=f'],
    ]);
  });

  it('has no inherited names', () => {
    expect(parseQuery('a=b').get('constructor')).to.equal(undefined);
    expect(parseQuery('__proto__=b').get('__proto__')).to.equal('b');
  });

  for (const raw of ['a=%', 'a=%4', 'a=%zz', '%ff=a', 'a=%c0%80', 'a=%ed%a0%80', 'a=%00', 'a=\0']) {
    it(`answers 400 to ${JSON.stringify(raw)}`, () => {
      expect(() => parseQuery(raw))
        .to.throw(ApiError)
        .with.property('code', 'bad_request');
    });
  }

  it('accepts 1,000 parameters, answers 400 to 1,001 and 414 over 8 KiB', () => {
    expect(parseQuery('a&'.repeat(1000)).names).to.have.length(1000);
    expect(() => parseQuery('a&'.repeat(1001)))
      .to.throw(ApiError)
      .with.property('status', 400);
    expect(() => parseQuery('a'.repeat(8193)))
      .to.throw(ApiError)
      .with.property('status', 414);
  });

  it('agrees with URLSearchParams on every well-formed query (property)', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 12 });
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 12 }), (entries) => {
        fc.pre(!entries.flat().some((part) => part.includes('\0')));
        const search = new URLSearchParams(entries);
        expect(pairs(search.toString())).to.deep.equal([...search]);
      }),
      { numRuns: 300 },
    );
  });

  it('throws nothing but ApiError (property)', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (raw) => {
        try {
          parseQuery(raw);
        } catch (error) {
          expect(error).to.be.instanceOf(ApiError);
          // An error must not repeat what was sent; short texts occur in any sentence.
          if (raw.length > 12) expect((error as ApiError).message).to.not.include(raw);
        }
      }),
      { numRuns: 500 },
    );
  });
});
