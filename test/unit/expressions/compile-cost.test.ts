/** What it may cost to compile the expressions of a body: nobody else is served meanwhile. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { compileDetokenization, NamedTokens } from '../../../shared/expressions/detokenization.ts';
import { ExpressionError } from '../../../shared/expressions/expression-error.ts';
import { DETOKENIZATION_FILTERS_MAX } from '../../../shared/expressions/limits.ts';

// A heap is as small as it can be only after a collection that is asked for.
setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

describe('compiling the expressions of a body', () => {
  it('is bounded by the characters of all their filters together', () => {
    const named = new NamedTokens();
    const filters = `| json: '$${'[0]'.repeat(300)}' `;
    const source = `{{ abc ${filters}}}`;
    const times = Math.floor(DETOKENIZATION_FILTERS_MAX / filters.length);
    for (let count = 0; count < times; count += 1) compileDetokenization(source, named);
    expect(() => compileDetokenization(source, named)).to.throw(
      ExpressionError,
      'More than 250000 characters of filters',
    );
  });

  it('is left out for who may use no tokens', () => {
    const refusal = new Error('may use none');
    const named = new NamedTokens(() => {
      throw refusal;
    });
    expect(() => compileDetokenization('{{ abc | no_such_filter }}', named)).to.throw(refusal);
    expect(compileDetokenization('no expression', named)).to.equal(undefined);
  });

  it('leaves templates behind that are bounded by what they take, not by their length alone', () => {
    const held = (): number => {
      gc();
      return process.memoryUsage().heapUsed;
    };
    const before = held();
    for (let number = 0; number < 3_000; number += 1) {
      const source = `{{ abc | json: '$${'[0]'.repeat(300)}[${number}]' }}`;
      compileDetokenization(source, new NamedTokens());
    }
    expect(held() - before).to.be.below(24 * 1024 * 1024);
  });
});
