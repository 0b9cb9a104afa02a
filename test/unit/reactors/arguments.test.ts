/** The ten argument rules of reactors (spec: Reactors), as a pure function. */
import { expect } from 'chai';
import { checkArguments, prepareArguments } from '../../../data-plane/reactors/arguments.ts';
import type { RequestParameter } from '../../../shared/api/reactor-formulas.ts';
import { ApiError } from '../../../shared/errors.ts';

type Declared = [name: string, type: RequestParameter['type'], optional?: boolean];

const declare = (list: Declared[]): RequestParameter[] =>
  list.map(([name, type, optional = false]) => ({ name, type, optional }));

/** What the code gets, as JSON would carry it. */
const prepare = (list: Declared[], args: unknown): unknown =>
  JSON.parse(JSON.stringify(prepareArguments(declare(list), args)));

function errorsOf(list: Declared[], args: unknown): Record<string, string[]> {
  try {
    prepareArguments(declare(list), args);
  } catch (error) {
    expect(error).to.be.instanceOf(ApiError);
    expect((error as ApiError).status).to.equal(400);
    return (error as ApiError).errors ?? {};
  }
  throw new Error('the arguments were accepted');
}

describe('the arguments of a reactor', () => {
  describe('without declarations', () => {
    for (const args of [{ a: { b: [1] } }, [1, { a: 2 }], 'text', 7, false, null, {}]) {
      it(`are passed as they are: ${JSON.stringify(args)}`, () => {
        expect(prepare([], args)).to.deep.equal(args);
      });
    }
    it('are null when absent', () => {
      expect(prepareArguments([], undefined)).to.equal(null);
    });
  });

  it('are kept where they are declared, and gone where they are not', () => {
    const args = { a: 'x', b: 'y', c: { d: 1, e: 2 }, f: { g: 1 }, h: [1] };
    const declared: Declared[] = [
      ['a', 'string'],
      ['c.d', 'number'],
    ];
    expect(prepare(declared, args)).to.deep.equal({ a: 'x', c: { d: 1 } });
  });

  it('may supply several declared parameters from one value', () => {
    const card = { number: '4242424242424242', expiration_month: 1, cvc: '123' };
    const declared: Declared[] = [
      ['card.number', 'string'],
      ['card.expiration_month', 'number'],
    ];
    const expected = { card: { number: '4242424242424242', expiration_month: 1 } };
    expect(prepare(declared, { card })).to.deep.equal(expected);
  });

  it('are required, unless optional', () => {
    const declared: Declared[] = [
      ['a', 'string'],
      ['b.c', 'number'],
      ['d', 'boolean', true],
    ];
    expect(errorsOf(declared, {})).to.have.all.keys('args.a', 'args.b.c');
    expect(prepare(declared, { a: 'x', b: { c: 1 } })).to.deep.equal({ a: 'x', b: { c: 1 } });
  });

  it('are required as a whole when anything is declared, even if all of it is optional', () => {
    const declared: Declared[] = [['a', 'string', true]];
    for (const args of [undefined, null, [], ['a'], 'text', 1, true]) {
      expect(errorsOf(declared, args), String(args)).to.have.all.keys('args');
    }
    expect(prepare(declared, {})).to.deep.equal({});
  });

  it('match names by case, and dots as levels only', () => {
    expect(errorsOf([['Name', 'string']], { name: 'x' })).to.have.all.keys('args.Name');
    expect(errorsOf([['a.b.c', 'string']], { 'a.b.c': 'x' })).to.have.all.keys('args.a.b.c');
    const both = { 'a.b': 'flat', a: { b: 'nested' } };
    expect(prepare([['a.b', 'string']], both)).to.deep.equal({ a: { b: 'nested' } });
    expect(errorsOf([['a.0', 'string']], { a: ['x'] })).to.have.all.keys('args.a.0');
  });

  const CASTS: [RequestParameter['type'], unknown, unknown][] = [
    ['string', 'x', 'x'],
    ['string', 12.5, '12.5'],
    ['string', true, 'true'],
    ['string', '', ''],
    ['number', 7, 7],
    ['number', '12.5', 12.5],
    ['number', '-3', -3],
    ['boolean', true, true],
    ['boolean', 'true', true],
    ['boolean', 'TRUE', true],
    ['boolean', 'False', false],
  ];
  for (const [type, given, expected] of CASTS) {
    it(`casts ${JSON.stringify(given)} to ${type}`, () => {
      expect(prepare([['a', type]], { a: given })).to.deep.equal({ a: expected });
    });
  }

  const NO_CASTS: [RequestParameter['type'], unknown][] = [
    ...[{}, [], null, { number: '4242424242424242' }].map(
      (value): [RequestParameter['type'], unknown] => ['string', value],
    ),
    ...['', 'x', ' 1', '0x10', '1e400', '12345678901234567890', true, null, {}, []].map(
      (value): [RequestParameter['type'], unknown] => ['number', value],
    ),
    ...['yes', '1', 1, 0, '', null, {}, []].map((value): [RequestParameter['type'], unknown] => [
      'boolean',
      value,
    ]),
  ];
  for (const [type, given] of NO_CASTS) {
    it(`refuses to cast ${JSON.stringify(given)} to ${type}, and does not repeat it`, () => {
      const errors = errorsOf([['a', type]], { a: given });
      expect(errors).to.deep.equal({ 'args.a': [`Cannot be cast to ${type}`] });
    });
  }

  it('may be null where optional', () => {
    expect(prepare([['a', 'number', true]], { a: null })).to.deep.equal({ a: null });
  });

  it('never reach a prototype', () => {
    const args: unknown = JSON.parse('{"__proto__":{"x":"own"},"constructor":{"name":"c"},"a":{}}');
    const names = [
      '__proto__.x',
      'constructor.name',
      'a.toString',
      'a.__proto__.polluted',
      'hasOwnProperty',
    ];
    const declared = names.map((name): Declared => [name, 'string', true]);
    const prepared = prepareArguments(declare(declared), args);
    expect(JSON.stringify(prepared)).to.equal(
      '{"__proto__":{"x":"own"},"constructor":{"name":"c"}}',
    );
    expect(Object.getPrototypeOf({})).to.equal(Object.prototype);
    expect(({} as { x?: unknown }).x).to.equal(undefined);
  });

  it('survive declarations inside each other', () => {
    const declared: Declared[] = [
      ['a', 'string', true],
      ['a.b', 'string', true],
    ];
    expect(prepare(declared, { a: 'x' })).to.deep.equal({ a: 'x' });
    expect(errorsOf(declared, { a: { b: 'x' } })).to.have.all.keys('args.a');
  });

  describe('that are not detokenized yet', () => {
    const declared: Declared[] = [
      ['a.b', 'number'],
      ['c', 'boolean'],
      ['d', 'string', true],
    ];
    const check = (args: unknown) => () => checkArguments(declare(declared), args);

    it('are refused for what no expression can change', () => {
      const refused: unknown[] = [
        ...[undefined, null, 'text', 7, [], {}, { c: true }, { a: {}, c: true }],
        ...[
          { a: { b: 'x' }, c: true },
          { a: { b: 1 }, c: 'yes' },
          { a: 'x', c: true },
        ],
        ...[{ a: { b: '{{ x }}' } }, { a: { b: 1 }, c: '{{ x }}', d: {} }],
      ];
      for (const args of refused) expect(check(args), JSON.stringify(args)).to.throw(ApiError);
    });

    it('are accepted where an expression stands for them, or for what may hold them', () => {
      const accepted: unknown[] = [
        ...['{{ x }}', 'a {{ x }}', { a: '{{ x }}', c: '{{ y }}' }, { a: { b: 1 }, c: true }],
        ...[
          { a: { b: 'x{{ y }}' }, c: false },
          { a: { b: '1' }, c: 'TRUE', d: '{{ x }}', e: 1 },
        ],
      ];
      for (const args of accepted) expect(check(args), JSON.stringify(args)).not.to.throw();
    });

    it('may be anything without declarations', () => {
      for (const args of [undefined, null, 1, 'x', [1]]) checkArguments([], args);
    });
  });
});
