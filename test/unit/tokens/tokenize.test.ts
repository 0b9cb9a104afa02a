import { expect } from 'chai';
import { ApiError } from '../../../shared/errors.ts';
import { planTokenize, TOKENIZED_TOKENS_MAX } from '../../../shared/tokens/tokenize.ts';

/** What is asked for, as `path kind body`. */
const asked = (body: unknown): unknown[] =>
  planTokenize(body).requests.map(({ path, kind, body: request }) => [path, kind, request]);

/** The answer when every request is answered by its place. */
function rendered(body: unknown): unknown {
  const { requests, render } = planTokenize(body);
  return JSON.parse(render(requests.map((_, index) => String(index))));
}

const value = (path: string, data: unknown) => [path, 'value', { type: 'token', data }];

describe('what a tokenize request asks for', () => {
  it('is a token for every text, number and boolean, at any depth', () => {
    const body = { a: 'x', b: [1, [true, ''], { c: 0, d: false }], e: {}, f: [] };
    expect(asked(body)).to.deep.equal([
      value('a', 'x'),
      value('b.0', 1),
      value('b.1.0', true),
      value('b.1.1', ''),
      value('b.2.c', 0),
      value('b.2.d', false),
    ]);
    expect(rendered(body)).to.deep.equal({
      a: 0,
      b: [1, [2, 3], { c: 4, d: 5 }],
      e: {},
      f: [],
    });
  });
  it('is nothing for null', () => {
    const body = { a: null, b: [null, 'x'] };
    expect(asked(body)).to.deep.equal([value('b.1', 'x')]);
    expect(rendered(body)).to.deep.equal({ a: null, b: [null, 0] });
    expect(rendered(null)).to.equal(null);
  });
  it('may be one value', () => {
    for (const body of ['x', 1, false]) {
      expect(asked(body)).to.deep.equal([value('', body)]);
      expect(rendered(body)).to.equal(0);
    }
  });

  const requests: unknown[] = [
    { type: 'token', data: 'x' },
    { type: 'card', data: { number: '4' } },
    { type: 'card', data: null },
    { type: 'token', data: 'x', other: 1 },
    { type: 'token', id: 'abc', data: [], mask: null, containers: ['/a/'] },
  ];
  for (const request of requests) {
    it(`is the token of ${JSON.stringify(request)}`, () => {
      expect(asked(request)).to.deep.equal([['', 'token', request]]);
      expect(asked([{ a: request }])).to.deep.equal([['0.a', 'token', request]]);
      expect(rendered([{ a: request }])).to.deep.equal([{ a: 0 }]);
    });
  }
  it('is a generic token for data with members of token requests only', () => {
    for (const request of [{ data: 'x' }, { data: { a: 1 }, metadata: { k: 'v' }, type: null }]) {
      expect(asked(request)).to.deep.equal([['', 'token', { ...request, type: 'token' }]]);
    }
  });

  const others: object[] = [
    { type: 'card' },
    { type: 'CARD', data: 'x' },
    { type: 'constructor', data: 'x' },
    { type: 1, data: 'x' },
    { data: 'x', other: 1 },
    { Data: 'x', type: 'token' },
  ];
  for (const object of others) {
    it(`is each value of ${JSON.stringify(object)}`, () => {
      const expected = Object.entries(object).map(([name, data]) => value(name, data));
      expect(asked(object)).to.deep.equal(expected);
    });
  }
  it('is nothing for null as data without a type', () => {
    expect(rendered({ data: null })).to.deep.equal({ data: null });
  });

  it('keeps the names of members, also those that could be mistaken', () => {
    const text = '{"__proto__":"a","constructor":{"toString":"b"},"a\\"\\u2028":"c"}';
    expect(JSON.stringify(rendered(JSON.parse(text)))).to.equal(
      JSON.stringify(JSON.parse(text.replace('"a"', '0').replace('"b"', '1').replace('"c"', '2'))),
    );
  });
  it('is named without names that could be data', () => {
    const body = { 'ann@example.com': 'x', '4242424242424242': [{ ok_1: 'y' }] };
    const paths = planTokenize(body).requests.map(({ path }) => path);
    expect(paths).to.have.members(['*', '*.0.ok_1']);
  });
  it('has a limit', () => {
    const values = (count: number) => Array.from({ length: count }, (_, index) => index);
    expect(asked(values(TOKENIZED_TOKENS_MAX))).to.have.length(TOKENIZED_TOKENS_MAX);
    try {
      planTokenize({ a: values(TOKENIZED_TOKENS_MAX + 1) });
      expect.fail('accepted');
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      expect(error.errors).to.have.all.keys('body');
    }
  });
});
