import { expect } from 'chai';
import fc from 'fast-check';
import { JSONPathEnvironment } from 'json-p3';
import { ExpressionError } from '../../../shared/expressions/expression-error.ts';
import { compileJsonPath } from '../../../shared/expressions/json-path.ts';
import { Meter } from '../../../shared/expressions/meter.ts';

const DOCUMENT = {
  store: {
    book: [
      { category: 'reference', author: 'Nigel Rees', price: 8.95, tags: ['a'] },
      { category: 'fiction', author: 'Evelyn Waugh', price: 12.99, isbn: '1', tags: [] },
      { category: 'fiction', author: 'J. R. R. Tolkien', price: 22.99, isbn: '2' },
    ],
    bicycle: { color: 'red', price: 399, first: 'no list' },
  },
  limit: 10,
  none: null,
};

function query(path: string, value: unknown = DOCUMENT): unknown {
  return compileJsonPath(path)(value, new Meter());
}

function refuses(path: string, value: unknown = DOCUMENT): void {
  expect(() => query(path, value), path).to.throw(ExpressionError);
}

const CASES: [string, unknown][] = [
  ['$', DOCUMENT],
  ['$.store.bicycle.color', 'red'],
  ["$['store']['bicycle'].color", 'red'],
  ['$.store.book[0].author', 'Nigel Rees'],
  ['$.store.book[-1].author', 'J. R. R. Tolkien'],
  ['$.store.book[9]', null],
  ['$.store.book.size', null],
  ['$.store.book.first', null],
  ['$.store.bicycle.first', 'no list'],
  ['$.none', null],
  ['$..color', 'red'],
  ['$.store.book[1:2].price', 12.99],
  ['$.store.book[::-1][0]', null],
  ['$.store.book[5:]', null],
  ['$.store.book[0:3:0]', null],
  ['$.store.book[?@.price < 10].author', 'Nigel Rees'],
  ['$.store.book[?(@.price < $.limit)].author', 'Nigel Rees'],
  ["$.store.book[?@.category == 'fiction' && @.price > 20].price", 22.99],
  ['$.store.book[?!@.isbn].author', 'Nigel Rees'],
  ["$.store.book[?@.isbn == '1' || @.isbn == '9'].price", 12.99],
  ['$.store.book[?length(@.author) == 12].price', 12.99],
  ['$.store.book[?count(@.tags[*]) == 1].price', 8.95],
  ['$.store.book[?value(@.tags[*]) == "a"].price', 8.95],
  ['$.store.book[?@.tags == @.nope].price', 22.99],
  ['$[?@ == null]', null],
  ['$.store.book[0][?length(@) == 1][0]', 'a'],
];

describe('json filter', () => {
  for (const [path, found] of CASES) {
    it(`finds ${path}`, () => {
      expect(query(path)).to.deep.equal(found);
    });
  }

  it('compares whole values', () => {
    expect(query('$[?@ == $.a]', { a: [], c: {} })).to.deep.equal([]);
    expect(
      query('$.b[?@ == $.a].y[0]', { a: { x: 1, y: [2] }, b: [{ y: [2], x: 1 }, 1] }),
    ).to.equal(2);
    expect(query('$.b[?@ != $.a]', { a: { x: 1 }, b: [{ x: 1 }, { x: '1' }] })).to.deep.equal({
      x: '1',
    });
  });

  it('counts characters in length()', () => {
    expect(query('$[?length(@) == 2]', ['\u{1f600}\u{1f601}', 'abc'])).to.equal(
      '\u{1f600}\u{1f601}',
    );
  });

  it('refuses several values, bad syntax and regular expressions', () => {
    const paths = [
      '$..price',
      '$.store.book[*]',
      '$.store.book[0, 0]',
      '$.store.book[?@.category == "fiction"]',
      '$.store.book[',
      'store',
      '',
      '$.a b',
      "$[?match(@.author, '(a*)*b')]",
      "$[?search(@.author, '(a*)*b')]",
      '$[?eval(@)]',
      '$.store.book[?@.price < 10 +',
      `$${'.a'.repeat(2000)}`,
      `$[?${'('.repeat(900)}`,
    ];
    for (const path of paths) refuses(path);
  });

  it('reads own members only', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'length']) {
      expect(query(`$.${name}`, {}), name).to.equal(null);
      expect(query(`$..${name}`, { a: [] }), name).to.equal(null);
      expect(query(`$[?@.${name}]`, [{}, 'text', []]), name).to.equal(null);
    }
    const sameNames: unknown = JSON.parse('[{"constructor": {}}, {"other": {}}]');
    expect(query('$[?@ == $[0]].constructor', sameNames)).to.deep.equal({});
  });

  it('ends exponential and quadratic queries', () => {
    const list = Array.from({ length: 200 }, (_, index) => ({ index, text: 'x'.repeat(2000) }));
    const nested = { a: list, b: list };
    const texts = Array.from({ length: 2000 }, () => 'x'.repeat(4000));
    refuses(`$${'[*,*]'.repeat(40)}`, JSON.parse('['.repeat(60) + ']'.repeat(60)));
    refuses(`$${'[0,0]'.repeat(40)}`, JSON.parse('['.repeat(60) + ']'.repeat(60)));
    refuses(`$${'..*'.repeat(30)}`, JSON.parse('['.repeat(60) + ']'.repeat(60)));
    const chain: unknown = JSON.parse(`${'{"a":'.repeat(60)}1${'}'.repeat(60)}`);
    refuses('$..[?@..[?@..[?@..[?@..[?@.none]]]]]', chain);
    refuses('$.a[?count($..[?count($..*) > 1]) > 1]', nested);
    refuses('$[?$.a == $.b]', { ...Object.fromEntries(texts.entries()), a: texts, b: [...texts] });
    refuses(
      '$..*',
      Array.from({ length: 500_000 }, () => 0),
    );
  });

  it('survives deep nesting of filters', () => {
    for (const path of [
      `$[?${'!'.repeat(900)}@.a]`,
      `$[?${'@[?'.repeat(300)}@.a${']'.repeat(301)}`,
    ]) {
      try {
        query(path, [{ a: 1 }]);
      } catch (error) {
        expect(error).to.be.instanceOf(ExpressionError);
      }
    }
  });

  it('finds what json-p3 finds', () => {
    const step = fc.constantFrom(
      '.a',
      '.b',
      "['c']",
      '[0]',
      '[-1]',
      '.*',
      '..a',
      '..*',
      '[0,1]',
      '[1:]',
      '[:-1]',
      '[::2]',
      '[::-1]',
      '[-2:9]',
      '[3:0:-2]',
      '[?@.a]',
      '[?!@.a]',
      '[?@.a == 1]',
      '[?@.a >= @.b]',
      '[?@ < 5]',
      "[?@ == 'x']",
      '[?@.a != $.b]',
      '[?length(@) > 1]',
      '[?count(@.*) == 2]',
      '[?@.a && @.b]',
      '[?@.a || @[0] == null]',
      '[?value(@..a) == 1]',
      '[?@ == $.a]',
    );
    const path = fc.array(step, { minLength: 1, maxLength: 4 }).map((list) => `$${list.join('')}`);
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.constantFrom(null, true, 1, 2, 'x', 'xyz'),
        fc.array(tie('tree'), { maxLength: 4 }),
        // Not empty: json-p3 2.3.1 takes {} and [] for equal when {} is on the left.
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('tree'), { minKeys: 1 }),
      ),
    }));
    const oracle = new JSONPathEnvironment();
    fc.assert(
      fc.property(path, tree, (source, value) => {
        const nodes = oracle.query(source, value as never).values();
        if (nodes.length > 1) refuses(source, value);
        else expect(query(source, value)).to.deep.equal(nodes[0] ?? null);
      }),
      { numRuns: 2000 },
    );
  });
});
