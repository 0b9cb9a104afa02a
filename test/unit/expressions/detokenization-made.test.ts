/** What each expression yielded, told apart from the text around it: the tripwire looks for that. */
import { expect } from 'chai';
import {
  compileDetokenization,
  detokenizationMeter,
  NamedTokens,
} from '../../../shared/expressions/detokenization.ts';

const DATA = { number: '4242 4242', holders: 'Ann,Bob' };
const VIEWS = new Map([['abc', { data: DATA, token: { id: 'abc', data: DATA, type: 'token' } }]]);

function madeOf(source: string): unknown[] {
  const made: unknown[] = [];
  compileDetokenization(source, new NamedTokens())?.(VIEWS, detokenizationMeter(), made);
  return made;
}

describe('what expressions yielded', () => {
  const number = "abc | json: '$.number'";
  const cases: [string, unknown[]][] = [
    ['{{ abc }}', [DATA]],
    [`{{ ${number} }}`, ['4242 4242']],
    [`pan {{ ${number} | remove: ' ' }} end`, ['42424242']],
    [`{{ ${number} }}{{ ${number} | remove: ' ' }}`, ['4242 4242', '42424242']],
    ["{{ abc | json: '$.holders' | split: ',' }}", [['Ann', 'Bob']]],
    ["by {{ abc | json: '$.holders' | split: ',' }}", [['Ann', 'Bob']]],
    ["{{ token: abc | json: '$.type' }}", ['token']],
  ];
  for (const [source, made] of cases) {
    it(`is told of ${source}`, () => {
      expect(madeOf(source)).to.deep.equal(made);
    });
  }

  it('is the data where a token is put in whole', () => {
    for (const source of ['{{ token: abc }}', 'token {{ token: abc }}']) {
      expect(madeOf(source), source).to.deep.equal([DATA]);
    }
  });
});
