/** What a script returned, taken apart without parsing what is only passed on. */
import { expect } from 'chai';
import fc from 'fast-check';
import { ReturnedError, readReturned } from '../../../data-plane/reactors/returned.ts';
import { ApiError } from '../../../shared/errors.ts';

describe('what a script returned', () => {
  it('has its members found whatever is inside and around them', () => {
    const cases: [string, unknown, string | undefined][] = [
      ['null', undefined, undefined],
      ['{}', undefined, undefined],
      ['{"raw":1}', undefined, '1'],
      ['{"raw":null}', undefined, 'null'],
      ['{"tokenize":null,"raw":"x"}', undefined, '"x"'],
      ['{"raw":{"tokenize":1},"tokenize":{"a":["b"]}}', { a: ['b'] }, '{"tokenize":1}'],
      ['{"body":1,"headers":{"a":"}"},"raw":"}{\\"\\\\"}', undefined, '"}{\\"\\\\"'],
      ['{"raw" : [ 1 , {"a" : 2} ] , "tokenize" : 5 }', 5, '[ 1 , {"a" : 2} ]'],
      ['{"\\u0072aw":true}', undefined, 'true'],
    ];
    for (const [text, tokenize, raw] of cases) {
      expect(readReturned(text), text).to.deep.equal({ tokenize, raw });
    }
  });

  it('is what JSON.parse would have found, for any JSON', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (others, raw) => {
        const text = JSON.stringify({ ...others, raw, after: others });
        const expected: { raw: unknown } = JSON.parse(text);
        expect(JSON.parse(readReturned(text).raw ?? '')).to.deep.equal(expected.raw);
      }),
    );
  });

  for (const text of ['[]', '"x"', '1', 'true', '[{"raw":1}]']) {
    it(`is refused when it is no object: ${text}`, () => {
      expect(() => readReturned(text)).to.throw(ReturnedError, 'must return an object');
    });
  }

  it('is refused when it is no JSON, is too deep, or has half a character', () => {
    const deep = `${'['.repeat(70)}${']'.repeat(70)}`;
    for (const text of [
      '{',
      '',
      '{"raw":1}x',
      '{"raw":\u0000}',
      `{"raw":${deep}}`,
      '{"raw":"\\ud800"}',
    ]) {
      expect(() => readReturned(text)).to.throw(ReturnedError, 'cannot be passed on');
    }
  });

  it('may not have more to tokenize than a request of its own could', () => {
    const text = JSON.stringify({ tokenize: 'x'.repeat(1024 * 1024) });
    expect(() => readReturned(text)).to.throw(ReturnedError, 'larger than 1 MiB');
    expect(readReturned(JSON.stringify({ tokenize: 'x'.repeat(1e6) })).tokenize).to.have.length(
      1e6,
    );
    expect(readReturned(`{"raw":[${'[],'.repeat(1e6)}[]]}`).raw).to.have.length(3e6 + 4);
  });

  it('may have any number of members to pass on, but not to tokenize', () => {
    const many = JSON.stringify(
      Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`m${i}`, i])),
    );
    expect(readReturned(`{"raw":${many}}`).raw).to.equal(many);
    expect(() => readReturned(`{"tokenize":${many}}`)).to.throw(ApiError);
  });
});
