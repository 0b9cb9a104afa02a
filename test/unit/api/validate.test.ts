import { expect } from 'chai';
import { Type } from 'typebox';
import { nullable } from '../../../shared/api/fields.ts';
import { createToken, updateToken } from '../../../shared/api/tokens.ts';
import { compileValidator } from '../../../shared/api/validate.ts';
import { ApiError, type FieldErrors } from '../../../shared/errors.ts';

function errorsOf(work: () => unknown): FieldErrors {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError) return error.errors ?? {};
    throw error;
  }
  return {};
}

/** The message of the facts, then what was expected where that is one type. */
function wrongType(expected?: string): string[] {
  const asked = expected === undefined ? [] : [`Must be ${expected}`];
  return ['Deserialization error, invalid input.', ...asked];
}

describe('compileValidator', () => {
  const schema = Type.Object({
    name: Type.String({ minLength: 1, maxLength: 3 }),
    parts: Type.Optional(
      Type.Array(Type.Object({ size: Type.Integer({ minimum: 1 }) }), { maxItems: 2 }),
    ),
    labels: Type.Optional(
      Type.Unsafe<object>({ type: 'object', additionalProperties: { type: 'string' } }),
    ),
    isOn: Type.Optional(nullable(Type.Boolean())),
    either: Type.Optional(Type.Unsafe<number | boolean>({ type: ['number', 'boolean'] })),
    word: Type.Optional(
      Type.Unsafe<string | null>({ type: ['string', 'null'], enum: ['off', 'report', null] }),
    ),
  });
  const validate = compileValidator(schema);

  it('returns the value itself, unknown members included', () => {
    const value = { name: 'a', other: 1 };
    expect(validate(value)).to.equal(value);
  });

  const cases: [string, unknown, FieldErrors][] = [
    ['a list', [], { body: ['A JSON object is required'] }],
    ['null', null, { body: ['A JSON object is required'] }],
    ['a text', 'x', { body: ['A JSON object is required'] }],
    ['a missing member', {}, { name: ['This member is required'] }],
    ['a member that is null', { name: null }, { name: ['This member is required'] }],
    ['a wrong type', { name: 1 }, { name: wrongType('a text') }],
    [
      'a wrong type where null may be',
      { name: 'a', isOn: 'false' },
      { isOn: wrongType('true or false') },
    ],
    ['a wrong type where several may be', { name: 'a', either: 'x' }, { either: wrongType() }],
    [
      'a word that is none of a list',
      { name: 'a', word: 'on' },
      { word: ['Must be one of off, report or null'] },
    ],
    ['a text too long', { name: 'abcd' }, { name: ['At most 3 characters are allowed'] }],
    ['a text too short', { name: '' }, { name: ['At least 1 characters are required'] }],
    [
      'a nested value',
      { name: 'a', parts: [{ size: 1 }, { size: 0 }] },
      { 'parts.1.size': ['Must be >= 1'] },
    ],
    [
      'a nested member left out',
      { name: 'a', parts: [{}] },
      { 'parts.0.size': ['This member is required'] },
    ],
    [
      'a list too long',
      { name: 'a', parts: [1, 2, 3] },
      { parts: ['At most 2 entries are allowed'] },
    ],
    [
      'a made-up name',
      { name: 'a', labels: { '4242': 1 } },
      { labels: [...wrongType(), 'Each value must be a text'] },
    ],
    [
      'two wrong members',
      { name: 1, parts: {} },
      {
        name: wrongType('a text'),
        parts: wrongType('a list'),
      },
    ],
  ];
  for (const [what, value, errors] of cases) {
    it(`reports ${what}`, () => {
      expect(errorsOf(() => validate(value))).to.deep.equal(errors);
    });
  }

  it('does not take inherited members for given ones', () => {
    const inherits = compileValidator(Type.Object({ constructor: Type.Unsafe<unknown>({}) }));
    expect(errorsOf(() => inherits({}))).to.have.property('constructor');
  });

  it('makes one error of a list with very many wrong entries', () => {
    const strings = compileValidator(Type.Object({ list: Type.Array(Type.String()) }));
    const list = Array.from({ length: 100_000 }, () => 1);
    expect(errorsOf(() => strings({ list }))).to.deep.equal({
      'list.0': wrongType('a text'),
    });
  });
});

describe('the schemas of tokens', () => {
  const create = compileValidator(createToken.body);
  const update = compileValidator(updateToken.body);

  for (const data of [0, false, '', [], {}, 'x', -0, { constructor: 1 }]) {
    it(`take ${JSON.stringify(data)} as data`, () => {
      expect(create({ type: 'token', data }).data).to.equal(data);
    });
  }

  it('refuse data that is null or missing', () => {
    expect(errorsOf(() => create({ type: 'token', data: null }))).to.have.all.keys('data');
    expect(errorsOf(() => create({ type: 'token' }))).to.have.all.keys('data');
    expect(errorsOf(() => update({ data: null }))).to.have.all.keys('data');
  });

  for (const type of ['', 1, null, 'CARD', 'foo', 'constructor', 'x'.repeat(10_000)]) {
    it(`refuse the type ${JSON.stringify(type).slice(0, 20)}`, () => {
      expect(errorsOf(() => create({ type, data: 1 }))).to.have.all.keys('type');
    });
  }

  it('take null for every optional member', () => {
    const members = ['id', 'mask', 'containers', 'metadata', 'search_indexes'];
    const others = ['fingerprint_expression', 'deduplicate_token', 'expires_at'];
    const nulls = Object.fromEntries([...members, ...others].map((name) => [name, null]));
    expect(errorsOf(() => create({ type: 'token', data: 1, ...nulls }))).to.deep.equal({});
    expect(errorsOf(() => update(nulls))).to.deep.equal({});
  });

  const refused: [string, unknown][] = [
    ['id', 7],
    ['containers', '/a/'],
    ['containers', [1]],
    ['metadata', 'x'],
    ['metadata', { a: 1 }],
    ['metadata', { a: { b: 'c' } }],
    ['search_indexes', 'x'],
    ['search_indexes', [null]],
    ['search_indexes', Array(11).fill('x')],
    ['fingerprint_expression', 'x'.repeat(401)],
    ['deduplicate_token', 'true'],
    ['expires_at', 5],
    ['expires_at', '1'.repeat(1_000_000)],
  ];
  for (const [name, value] of refused) {
    it(`refuse ${name} = ${JSON.stringify(value).slice(0, 30)}`, () => {
      const [path] = Object.keys(errorsOf(() => create({ type: 'token', data: 1, [name]: value })));
      expect(path?.split('.')[0]).to.equal(name);
    });
  }
});
