/** The names of members inside `req.bt`, against the client library that reactors were written for. */
import {
  getQueryParams,
  transformRequestSnakeCase,
  transformResponseCamelCase,
} from '@basis-theory/basis-theory-js/common/utils.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { loadPrelude } from '../../support/prelude.ts';

interface CaseConversion {
  toCamelCase(value: unknown): unknown;
  toSnakeCase(value: unknown): unknown;
  snakeParameter(name: string): string;
}

const { toCamelCase, toSnakeCase, snakeParameter } = loadPrelude(
  'case-conversion',
) as CaseConversion;

/** Names as people write them, with every separator, capital and digit in every place. */
const name = fc.oneof(
  fc
    .array(
      fc.constantFrom(...'aZbXc', 'é', 'É', 'ß', '_', '__', '-', '.', ' ', ':', '$', '7', '42'),
      {
        maxLength: 9,
      },
    )
    .map((parts) => parts.join('')),
  fc.string({ unit: 'binary-ascii', maxLength: 12 }),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<unknown>(null, true, 0, 1.5, '', 'aText_like this'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
}));
const object = fc.dictionary(name, json.value, { maxKeys: 4 });

describe('the names of members in req.bt', () => {
  it('are those that the client library makes of answers', () => {
    fc.assert(
      fc.property(object, (value) => {
        expect(toCamelCase(value)).to.deep.equal(transformResponseCamelCase(value));
      }),
      { numRuns: 3_000 },
    );
  });

  it('are those that the client library makes of requests', () => {
    fc.assert(
      fc.property(object, (value) => {
        expect(toSnakeCase(value)).to.deep.equal(transformRequestSnakeCase(value));
      }),
      { numRuns: 3_000 },
    );
  });

  it('are those that the client library makes of the parameters of a query', () => {
    fc.assert(
      fc.property(name, (parameter) => {
        const [[theirs] = []] = new URLSearchParams(getQueryParams({ [parameter]: 1 }));
        expect(snakeParameter(parameter)).to.equal(theirs);
      }),
      { numRuns: 3_000 },
    );
  });

  const examples: [string, string, string][] = [
    ['created_at', 'createdAt', 'created_at'],
    ['search_indexes.first_one', 'searchIndexesFirstOne', 'search_indexes_first_one'],
    ['_extras', 'extras', 'extras'],
    ['expiresAt', 'expiresAt', 'expires_at'],
    ['fooBAR', 'fooBar', 'foo_b_a_r'],
    ['line2', 'line2', 'line2'],
  ];
  for (const [given, camel, snake] of examples) {
    it(`turn ${given} into ${camel} and ${snake}`, () => {
      expect(toCamelCase({ [given]: [{ [given]: 1 }] })).to.deep.equal({
        [camel]: [{ [camel]: 1 }],
      });
      expect(toSnakeCase({ [given]: [{ [given]: 1 }] })).to.deep.equal({
        [snake]: [{ [snake]: 1 }],
      });
    });
  }

  it('leave a date, a pattern, an error and a buffer the values that they are', () => {
    const values = { aDate: new Date(0), aPattern: /x/, anError: new Error('x') };
    expect(toSnakeCase(values)).to.deep.equal({
      a_date: values.aDate,
      a_pattern: values.aPattern,
      an_error: values.anError,
    });
    const buffer = Buffer.from('x');
    expect((toSnakeCase({ buffer }) as { buffer: unknown }).buffer).to.equal(buffer);
  });

  it('never reach a prototype', () => {
    const hostile = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"p":1}}}');
    for (const converted of [toCamelCase(hostile), toSnakeCase(hostile)]) {
      expect(Object.getPrototypeOf(converted)).to.equal(Object.prototype);
      expect(converted).to.deep.equal({
        proto: { polluted: 1 },
        constructor: { prototype: { p: 1 } },
      });
    }
    expect({}).not.to.have.property('polluted');
    expect({}).not.to.have.property('p');
  });
});
