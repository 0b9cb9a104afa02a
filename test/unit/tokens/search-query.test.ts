import { expect } from 'chai';
import fc from 'fast-check';
import { ApiError } from '../../../shared/errors.ts';
import {
  parseSearchQuery,
  QUERY_LENGTH_MAX,
  type SearchNode,
} from '../../../shared/tokens/search-query.ts';

const A = { kind: 'data', value: 'a' };
const B = { kind: 'data', value: 'b' };
const C = { kind: 'data', value: 'c' };
const not = (node: object) => ({ kind: 'not', node });
const and = (...nodes: object[]) => ({ kind: 'and', nodes });
const or = (...nodes: object[]) => ({ kind: 'or', nodes });

/** What `errors.query` says; fails unless the query is refused. */
function problemOf(text: string): string {
  try {
    parseSearchQuery(text);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.code).to.equal('validation');
    expect(error.errors).to.have.all.keys('query');
    return error.errors?.query?.[0] ?? '';
  }
  throw new Error(`accepted: ${text}`);
}

describe('the query language of token search', () => {
  const trees: [string, object | undefined][] = [
    ['', undefined],
    [' \t\n', undefined],
    ['data:a', A],
    [' data:a ', A],
    ['data: a', A],
    ['data:a AND data:b', and(A, B)],
    ['data:a OR data:b', or(A, B)],
    ['data:a OR data:b AND data:c', or(A, and(B, C))],
    ['data:a AND data:b OR data:c', or(and(A, B), C)],
    ['(data:a OR data:b) AND data:c', and(or(A, B), C)],
    ['((data:a))', A],
    ['(data:a)AND(data:b)', and(A, B)],
    ['NOT data:a', not(A)],
    ['!data:a', not(A)],
    ['-data:a', not(A)],
    ['NOT(data:a)', not(A)],
    ['NOT NOT data:a', not(not(A))],
    ['!-data:a', not(not(A))],
    ['NOT data:a AND data:b', and(not(A), B)],
    ['NOT (data:a AND data:b)', not(and(A, B))],
    ['data:a AND NOT data:b', and(A, not(B))],
    ['data:a NOT data:b', and(A, not(B))],
    ['data:a -data:b !data:c', and(A, not(B), not(C))],
    ['data:a OR -data:b', or(A, not(B))],
  ];
  for (const [text, tree] of trees) {
    it(`reads ${JSON.stringify(text)}`, () => {
      expect(parseSearchQuery(text)).to.deep.equal(tree);
    });
  }

  const values: [string, object][] = [
    ['data:"a b"', { kind: 'data', value: 'a b' }],
    ['data:"AND"', { kind: 'data', value: 'AND' }],
    ['data:AND', { kind: 'data', value: 'AND' }],
    ['data:"a\\"b\\\\c"', { kind: 'data', value: 'a"b\\c' }],
    ['data:a\\ b\\)', { kind: 'data', value: 'a b)' }],
    ['data:-5', { kind: 'data', value: '-5' }],
    ['data:a:b', { kind: 'data', value: 'a:b' }],
    ['data:"*"', { kind: 'data', value: '*' }],
    ['data:a\\*', { kind: 'data', value: 'a*' }],
    ["data:'a'", { kind: 'data', value: "'a'" }],
    ['data:日本', { kind: 'data', value: '日本' }],
    ["data:x';DROP", { kind: 'data', value: "x';DROP" }],
    ['id:815029c2-29ec', { kind: 'id', value: '815029c2-29ec' }],
    ['type:card', { kind: 'type', value: 'card' }],
    ['fingerprint:6toma1DU', { kind: 'fingerprint', value: '6toma1DU' }],
    ['created_by:x', { kind: 'created_by', value: 'x' }],
    ['modified_by:x', { kind: 'modified_by', value: 'x' }],
    ['metadata.k:v', { kind: 'metadata', name: 'k', value: 'v' }],
    ['metadata.a.b-c:v', { kind: 'metadata', name: 'a.b-c', value: 'v' }],
    ['metadata.my\\ key\\::v', { kind: 'metadata', name: 'my key:', value: 'v' }],
    ['metadata.__proto__:v', { kind: 'metadata', name: '__proto__', value: 'v' }],
    ['container:/pci/high/', { kind: 'container', path: '/pci/high/', isPrefix: false }],
    ['container:"/PCI/"', { kind: 'container', path: '/pci/', isPrefix: false }],
    ['container:/', { kind: 'container', path: '/', isPrefix: false }],
    ['container:"/cust-1/*"', { kind: 'container', path: '/cust-1/', isPrefix: true }],
    ['container:/Cust*', { kind: 'container', path: '/cust', isPrefix: true }],
    ['container:/*', { kind: 'container', path: '/', isPrefix: true }],
  ];
  for (const [text, term] of values) {
    it(`reads ${text}`, () => expect(parseSearchQuery(text)).to.deep.equal(term));
  }

  describe('ranges of dates', () => {
    const day = (text: string) => Date.parse(`${text}T00:00:00Z`);
    const ranges: [string, number | undefined, number | undefined][] = [
      ['[2023-01-01 TO 2023-01-31]', day('2023-01-01'), day('2023-02-01')],
      ['{2023-01-01 TO 2023-01-31}', day('2023-01-02'), day('2023-01-31')],
      ['[2023-01-01 TO 2023-01-31}', day('2023-01-01'), day('2023-01-31')],
      ['{2023-01-01 TO 2023-01-31]', day('2023-01-02'), day('2023-02-01')],
      ['[* TO 2023-01-31]', undefined, day('2023-02-01')],
      ['[2023-01-01 TO *]', day('2023-01-01'), undefined],
      ['{* TO *}', undefined, undefined],
      ['[2024-02-29T10:00:00Z TO *]', Date.UTC(2024, 1, 29, 10), undefined],
      ['{2024-02-29T10:00:00.123 TO *]', Date.UTC(2024, 1, 29, 10, 0, 0, 124), undefined],
      ['[* TO 2024-02-29T10:00:00+02:00}', undefined, Date.UTC(2024, 1, 29, 8)],
      ['[* TO 9999-12-31]', undefined, day('9999-12-31') + 86_400_000],
    ];
    for (const [range, from_ms, before_ms] of ranges) {
      for (const kind of ['created_at', 'modified_at']) {
        it(`reads ${kind}:${range}`, () => {
          const expected = { kind, from_ms, before_ms };
          expect(parseSearchQuery(`${kind}:${range}`)).to.deep.equal(expected);
          expect(parseSearchQuery(`(NOT ${kind}: ${range})`)).to.deep.equal(not(expected));
        });
      }
    }
  });

  const refused: [string, number][] = [
    ['secret', 0],
    ['data', 0],
    ['data:', 5],
    ['data:""', 5],
    [':a', 0],
    ['"data":a', 0],
    ['data:(a OR b)', 5],
    ['data:"a', 7],
    ['data:a\\', 7],
    ['data:a data:b', 7],
    ['data:a and data:b', 7],
    ['data:a or data:b', 7],
    ['data:a AND', 10],
    ['AND data:a', 0],
    ['data:a OR OR data:b', 10],
    ['data:a && data:b', 7],
    ['NOT', 3],
    ['()', 1],
    ['(data:a', 7],
    ['data:a)', 6],
    ['data:a*', 5],
    ['data:*', 5],
    ['id:a*b', 3],
    ['data:ab"c"', 7],
    ['data:[a TO b]', 5],
    ['data:a\0', 6],
    ['secret:a', 0],
    ['metadata:a', 0],
    ['metadata.:a', 0],
    ['containers:/a/', 0],
    ['Data:a', 0],
    ['__proto__:a', 0],
    ['constructor:a', 0],
    ['container:pci', 10],
    ['container:/pci', 10],
    ['container:/a/../b/', 10],
    ['container:/a*/', 10],
    ['container:/*/*', 10],
    ['container:/a%*', 10],
    ['container:*', 10],
    ['created_at:2023-01-01', 11],
    ['created_at:[2023-01-01]', 22],
    ['created_at:[2023-01-01 2023-01-02]', 23],
    ['created_at:[2023-01-01 TO]', 25],
    ['created_at:[2023-02-30 TO *]', 11],
    ['created_at:[1/2/2023 TO *]', 11],
    ['created_at:[now TO *]', 11],
    ['created_at:[2023-01-01 TO *', 27],
  ];
  for (const [text, position] of refused) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      const problem = problemOf(text);
      expect(problem).to.match(new RegExp(`\\(at character ${position}\\)$`));
      for (const word of ['secret', '2023-0', 'pci']) {
        if (text.startsWith(word)) expect(problem).not.to.contain(word);
      }
    });
  }

  describe('limits', () => {
    const many = (count: number, by: string) =>
      Array.from({ length: count }, () => 'id:a').join(by);
    it('bounds the terms', () => {
      expect(parseSearchQuery(many(20, ' OR '))).to.have.property('kind', 'or');
      expect(problemOf(many(21, ' OR '))).to.contain('20 terms');
    });
    it('bounds the depth', () => {
      const nested = (depth: number) => `${'('.repeat(depth)}id:a${')'.repeat(depth)}`;
      expect(parseSearchQuery(nested(7))).to.deep.equal({ kind: 'id', value: 'a' });
      expect(problemOf(nested(8))).to.contain('deeper');
      expect(problemOf(`${'!'.repeat(100)}id:a`)).to.contain('deeper');
      expect(problemOf('('.repeat(QUERY_LENGTH_MAX))).to.contain('deeper');
    });
    it('bounds the length', () => {
      const long = `data:${'x'.repeat(QUERY_LENGTH_MAX - 5)}`;
      expect(parseSearchQuery(long)).to.have.property('kind', 'data');
      expect(problemOf(`${long}x`)).to.contain(String(QUERY_LENGTH_MAX));
    });
  });

  it('property: reads any text, or refuses it with a position and nothing of it', () => {
    const piece = fc.constantFrom(
      ...['data:', 'a', 'AND', 'OR', 'NOT', '!', '-', '(', ')', ' ', '"', '\\', '[', ']', '{'],
      ...['}', '*', ':', 'TO', 'metadata.', 'container:', '/', 'created_at:', '2023-01-01', '\0'],
    );
    const text = fc.oneof(
      fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join('')),
      fc.string({ maxLength: 60, unit: 'binary' }),
    );
    fc.assert(
      fc.property(text, (query) => {
        let tree: SearchNode | undefined;
        try {
          tree = parseSearchQuery(query);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          expect(error.errors?.query?.[0]).to.match(/^[A-Z][^\n]{3,80} \(at character \d{1,3}\)$/);
          return;
        }
        expect(tree === undefined).to.equal(query.trim() === '');
      }),
      { numRuns: 500 },
    );
  });
});
