import { expect } from 'chai';
import { ExpressionError } from '../../../shared/expressions/expression-error.ts';
import { MASK_EXPRESSIONS_MAX, OUTPUT_MAX } from '../../../shared/expressions/limits.ts';
import { evaluateMask, validateMask } from '../../../shared/expressions/mask.ts';

const DATA = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

function maskProblem(mask: unknown): ExpressionError {
  try {
    validateMask(mask);
  } catch (error) {
    if (error instanceof ExpressionError) return error;
    throw error;
  }
  throw new Error('Expected an ExpressionError');
}

describe('masks', () => {
  it('evaluates the card mask with its types', () => {
    const mask = {
      number: '{{ data.number | reveal_last: 4 }}',
      expiration_month: '{{ data.expiration_month }}',
      expiration_year: '{{ data.expiration_year }}',
    };
    validateMask(mask);
    expect(evaluateMask(mask, { data: DATA })).to.deep.equal({
      ...DATA,
      number: 'XXXXXXXXXXXX4242',
    });
  });

  it('keeps literals and everything that is not a string', () => {
    const mask = { a: 'text', b: [1, null, true, { c: 'x' }], d: {} };
    validateMask(mask);
    expect(evaluateMask(mask, { data: DATA })).to.deep.equal(mask);
    expect(evaluateMask(null, { data: DATA })).to.equal(null);
    expect(evaluateMask(7, { data: DATA })).to.equal(7);
    expect(evaluateMask('x'.repeat(100_000), { data: DATA })).to.have.length(100_000);
  });

  it('accepts text after a valid path and never shows clear data for it', () => {
    const leaves = [
      '{{ data.number, reveal_last: 4 }}',
      '{{ data.number reveal_last: 4 }}',
      '{{data.number,reveal_last:4}}',
      '{{ data.number: 4 }}',
      '{{ data.number ] }}',
      '{{ data.number @!? }}',
      '{{ data.number "unclosed }}',
      '{{ data.number, x | reveal_last: 4 }}',
      '{{ data.number\u00a0| reveal_last: 4 }}',
      'card {{ data.number, reveal_last: 4 }} of {{ data.expiration_year }}',
    ];
    for (const leaf of leaves) {
      validateMask({ leaf });
      expect(evaluateMask({ leaf, month: 1 }, { data: DATA }), leaf).to.deep.equal({ month: 1 });
      expect(evaluateMask([leaf, 1], { data: DATA }), leaf).to.deep.equal([null, 1]);
      expect(evaluateMask(leaf, { data: DATA }), leaf).to.equal(undefined);
    }
  });

  it('refuses other malformed leaves and names them', () => {
    const sources = [
      '{{',
      '}}',
      '{{ }}',
      '{% raw %}',
      '{{ data. }}',
      '{{ data | nope }}',
      '{{ data.number | reveal_last 4 }}',
      '{{ data.number | reveal_last: -4 }}',
      '{{ data.number, x }} {{ | }}',
    ];
    for (const source of sources) {
      expect(maskProblem({ a: [0, { b: source }] }).path, source).to.equal('mask.a.1.b');
    }
    expect(maskProblem('{{').path).to.equal('mask');
  });

  it('leaves out a leaf that fails on the data', () => {
    const mask = { a: '{{ data.number | to_number | plus: 1 }}', b: '{{ data.number | last4 }}' };
    expect(evaluateMask(mask, { data: { number: 'not a number' } })).to.deep.equal({ b: 'mber' });
    expect(evaluateMask(mask, { data: { number: { deep: 1 } } })).to.deep.equal({});
  });

  it('keeps an own __proto__ member and changes no prototype', () => {
    const mask: unknown = JSON.parse('{"__proto__": "{{ data.number | last4 }}", "x": 1}');
    const result = evaluateMask(mask, { data: DATA });
    expect(JSON.stringify(result)).to.equal('{"__proto__":"4242","x":1}');
    expect(Object.getPrototypeOf(result)).to.equal(Object.prototype);
  });

  it('bounds the output of all leaves together', () => {
    const data = { big: 'x'.repeat(1000) };
    const leaves = Array.from({ length: 200 }, () => '{{ data.big }}');
    const result = evaluateMask(leaves, { data });
    expect(JSON.stringify(result).length).to.be.lessThan(OUTPUT_MAX + 200 * 8);
    expect(evaluateMask('{{ data }}', { data: 'x'.repeat(OUTPUT_MAX + 1) })).to.equal(undefined);
    expect(evaluateMask('{{ data }}', { data: Array(OUTPUT_MAX).fill(0) })).to.equal(undefined);
  });

  it('bounds the number of expressions and the depth', () => {
    const leaves = Array.from({ length: MASK_EXPRESSIONS_MAX }, () => '{{ data }}');
    validateMask(leaves);
    expect(maskProblem([...leaves, '{{ data }}']).path).to.equal(`mask.${MASK_EXPRESSIONS_MAX}`);
    let deep: unknown = '{{ data }}';
    for (let level = 0; level < 200; level += 1) deep = [deep];
    maskProblem(deep);
  });
});
