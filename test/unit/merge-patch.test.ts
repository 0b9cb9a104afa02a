import { expect } from 'chai';
import fc from 'fast-check';
import { mergePatch } from '../../shared/merge-patch.ts';

/** RFC 7396 appendix A: original, patch, result. */
const VECTORS: [unknown, unknown, unknown][] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

type Json = ReturnType<typeof JSON.parse>;

function deepFreeze(value: Json): Json {
  if (typeof value === 'object' && value !== null) {
    for (const item of Object.values(value)) deepFreeze(item);
    Object.freeze(value);
  }
  return value;
}

const isObject = (value: Json): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The patch that turns one document into another; the target must hold no null members. */
function difference(from: Json, to: Json): Json {
  if (!isObject(from) || !isObject(to)) return to;
  const removed = Object.keys(from).filter((name) => !Object.hasOwn(to, name));
  return Object.fromEntries([
    ...removed.map((name) => [name, null]),
    ...Object.entries(to).map(([name, value]) => [
      name,
      Object.hasOwn(from, name) ? difference(from[name], value) : value,
    ]),
  ]);
}

const name = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'toString', '');

/** Objects of a few names, so that target and patch meet; `fromEntries` makes own members only. */
const json = (leaf: fc.Arbitrary<unknown>): fc.Arbitrary<Json> =>
  fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, leaf, fc.array(leaf, { maxLength: 3 }), tie('object')),
    object: fc
      .array(fc.tuple(name, tie('value')), { maxLength: 4 })
      .map((entries) => Object.fromEntries(entries)),
  })).object;

const document = json(fc.constantFrom(1, 'x', true));
const patch = json(fc.constantFrom(1, 'x', null));

describe('mergePatch', () => {
  for (const [index, [original, change, result]] of VECTORS.entries()) {
    it(`answers RFC 7396 appendix A, vector ${index + 1}`, () => {
      const frozen = deepFreeze(structuredClone(original));
      expect(mergePatch(frozen, deepFreeze(structuredClone(change)))).to.deep.equal(result);
    });
  }

  it('keeps __proto__ as data and touches no prototype', () => {
    const evil = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"p":1}}}');
    const result = mergePatch({ a: 1 }, evil) as Record<string, unknown>;
    expect(JSON.stringify(result)).to.equal(
      '{"a":1,"__proto__":{"polluted":true},"constructor":{"prototype":{"p":1}}}',
    );
    expect(Object.getPrototypeOf(result)).to.equal(Object.prototype);
    expect(result.polluted).to.equal(undefined);
    expect(Reflect.get({}, 'polluted')).to.equal(undefined);
    const merged = mergePatch(evil, JSON.parse('{"__proto__":{"more":1},"constructor":null}'));
    expect(JSON.stringify(merged)).to.equal('{"__proto__":{"polluted":true,"more":1}}');
    expect(mergePatch(evil, JSON.parse('{"__proto__":null,"constructor":null}'))).to.deep.equal({});
  });

  it('does not merge into what an object inherits', () => {
    expect(JSON.stringify(mergePatch({}, { toString: { a: 1 } }))).to.equal('{"toString":{"a":1}}');
  });

  it('leaves both inputs as they were', () => {
    fc.assert(
      fc.property(document, patch, (target, change) => {
        const before = JSON.stringify([target, change]);
        mergePatch(deepFreeze(target), deepFreeze(change));
        expect(JSON.stringify([target, change])).to.equal(before);
      }),
    );
  });

  it('applied twice is applied once', () => {
    fc.assert(
      fc.property(document, patch, (target, change) => {
        const once = mergePatch(target, change);
        expect(JSON.stringify(mergePatch(once, change))).to.equal(JSON.stringify(once));
      }),
    );
  });

  it('reaches any document without nulls from any other', () => {
    fc.assert(
      fc.property(document, document, (from, to) => {
        expect(mergePatch(from, difference(from, to))).to.deep.equal(to);
      }),
    );
  });

  it('leaves no null that came from an object of the patch', () => {
    fc.assert(
      fc.property(patch, (change) => {
        expect(JSON.stringify(mergePatch('replaced', change))).to.not.match(/:null/);
      }),
    );
  });
});
