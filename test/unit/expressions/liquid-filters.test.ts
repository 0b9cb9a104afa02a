import { expect } from 'chai';
import fc from 'fast-check';
import { Liquid } from 'liquidjs';
import { ExpressionError } from '../../../shared/expressions/expression-error.ts';
import { evaluate, problemOf } from './evaluate.ts';

const liquid = new Liquid({ ownPropertyOnly: true, timezoneOffset: 0 });

/** Characters of one UTF-16 unit: liquidjs counts units in some filters, we count characters. */
const unit = fc.constantFrom(...'aAbBzZ019 -_.,\t\n<>&"\'+/=%éßΩ\u4e2d');
const textual = fc.string({ unit, maxLength: 12 });
const notEmpty = fc.string({ unit, minLength: 1, maxLength: 3 });
const scalar = fc.oneof(
  textual,
  fc.integer({ min: -999, max: 999 }),
  fc.boolean(),
  fc.constant(null),
);
const whole = fc.integer({ min: -20, max: 20 });
const natural = fc.nat(20);
const numeric = fc.oneof(
  fc.integer({ min: -1e6, max: 1e6 }),
  fc.integer({ min: -1e6, max: 1e6 }).map((value) => value / 100),
  fc.integer({ min: -999, max: 999 }).map(String),
  fc.constant(null),
);
const nonZero = fc.integer({ min: 1, max: 99 });
const words = fc.array(textual, { maxLength: 6 });
const numbers = fc.array(fc.integer({ min: -50, max: 50 }), { maxLength: 8 });
const items = fc.array(
  fc.record({ a: fc.integer({ min: 0, max: 5 }), b: fc.constantFrom('x', 'Y', 'z', 'É') }),
  { maxLength: 6 },
);

/** Filter call with `v` as input and `p`, `q` as arguments; arbitraries of them. */
const SHARED: [string, fc.Arbitrary<unknown>, fc.Arbitrary<unknown>?, fc.Arbitrary<unknown>?][] = [
  ['append: p', scalar, scalar],
  ['prepend: p', scalar, scalar],
  ['capitalize', scalar],
  ['upcase', scalar],
  ['downcase', scalar],
  ['strip', scalar],
  ['lstrip', scalar],
  ['rstrip', scalar],
  ['strip_newlines', scalar],
  ['newline_to_br', scalar],
  // Ours leaves the text alone when the pattern is empty; liquidjs puts it between all letters.
  ['replace: p, q', scalar, notEmpty, textual],
  ['replace_first: p, q', scalar, notEmpty, textual],
  ['replace_last: p, q', scalar, notEmpty, textual],
  ['remove: p', scalar, notEmpty],
  ['remove_first: p', scalar, notEmpty],
  ['remove_last: p', scalar, notEmpty],
  ["split: p | join: '|'", textual, textual],
  ["split: p | first | append: '.'", textual, notEmpty],
  ["split: p | last | append: '.'", textual, notEmpty],
  ['split: p | size', textual, textual],
  ['slice: p', textual, whole],
  ['slice: p, q', textual, whole, natural],
  ["slice: p, q | join: ','", words, whole, natural],
  ['truncate: p', textual, natural],
  ['truncate: p, q', textual, natural, notEmpty],
  ['size', fc.oneof(textual, words, fc.integer(), fc.constant(null))],
  ['first', fc.oneof(textual, numbers)],
  ['last', fc.oneof(textual, numbers)],
  ["reverse | join: ','", words],
  ["sort | join: ','", numbers],
  ["sort | join: ','", words],
  ["sort_natural | join: ','", words],
  ["sort: 'a' | map: 'b' | join: ','", items],
  ["uniq | join: ','", numbers],
  ["compact | join: ','", fc.array(fc.oneof(textual, fc.constant(null)))],
  ["concat: p | join: ','", words, words],
  ['join: p', words, textual],
  ["map: 'a' | join: ','", items],
  ["where: 'a', p | map: 'b' | join: ','", items, fc.nat(5)],
  ["where: 'a' | size", items],
  ["reject: 'b', p | size", items, fc.constantFrom('x', 'Y')],
  ["find: 'a', p | append: ''", fc.constant([]), fc.nat(5)],
  ["find_index: 'a', p", items, fc.nat(5)],
  ["has: 'b', p", items, fc.constantFrom('x', 'nobody')],
  ["sum: 'a'", items],
  ['sum', numbers],
  ['abs', numeric],
  ['ceil', numeric],
  ['floor', numeric],
  ['round', numeric],
  ['round: p', numeric, fc.integer({ min: -3, max: 5 })],
  ['plus: p', numeric, numeric],
  ['minus: p', numeric, numeric],
  ['times: p', numeric, numeric],
  ['divided_by: p', numeric, nonZero],
  ['modulo: p', numeric, nonZero],
  ['at_least: p', numeric, numeric],
  ['at_most: p', numeric, numeric],
  ['default: p', scalar, textual],
  ['default: p, allow_false: true', scalar, textual],
  ['escape', scalar],
  ['escape_once', scalar],
  ['strip_html', scalar],
  ['url_encode', scalar],
  ['url_encode | url_decode', scalar],
  ['base64_encode', scalar],
  ['base64_encode | base64_decode', scalar],
  ...['%Y-%m-%d', '%A %a %B %b %h', '%C%y', '%e|%k|%l|%j', '%H:%M:%S.%L %I%p%P', '%N %3N', '%s']
    .concat(['%u%w %U %W', '%z %:z %%%n%t', '%-d %_m %^b %05Y %10A %-H'])
    .map((format): [string, fc.Arbitrary<unknown>] => [
      `date: '${format}'`,
      fc.integer({ min: -30_000_000_000, max: 250_000_000_000 }),
    ]),
];

describe('standard Liquid filters', () => {
  const zone = process.env.TZ;
  // liquidjs shifts by the local offset, and is wrong where that offset has changed.
  before(() => {
    process.env.TZ = 'UTC';
  });
  after(() => {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  });

  for (const [call, v, p = fc.constant(null), q = fc.constant(null)] of SHARED) {
    it(`{{ v | ${call} }} as liquidjs does`, () => {
      fc.assert(
        fc.property(v, p, q, (value, first, second) => {
          const scope = { v: value, p: first, q: second };
          const source = `={{ v | ${call} }}`;
          const expected: unknown = liquid.parseAndRenderSync(source, scope);
          expect(evaluate(source, undefined, scope)).to.equal(expected);
        }),
        { numRuns: 60 },
      );
    });
  }

  const OURS: [string, unknown, unknown][] = [
    ['truncatewords: 2', 'one two', 'one two'],
    ['truncatewords: 2', 'one two three', 'one two...'],
    ["truncatewords: 0, ''", ' one  two three', 'one'],
    ["replace: '', 'x'", 'abc', 'abc'],
    ["replace: 'a', '$&$&'", 'abc', '$&$&bc'],
    ["split: ''", 'a\u{1f600}b', ['a', '\u{1f600}', 'b']],
    ['size', '\u{1f600}', 1],
    ['slice: 1, 1', 'a\u{1f600}b', '\u{1f600}'],
    ['slice: -5', 'abc', ''],
    ['first', '\u{1f600}b', '\u{1f600}'],
    ['last', 'b\u{1f600}', '\u{1f600}'],
    ['first', null, null],
    ['capitalize', 'ÉTÉ', 'Été'],
    ['sort', [3, null, 'b', 1, 'a'], [1, 3, 'a', 'b', null]],
    ["sort: 'a.b'", [{ a: { b: 2 } }, { a: { b: 1 } }], [{ a: { b: 1 } }, { a: { b: 2 } }]],
    ["where: 'a', nil", [{ a: null }, { a: 1 }], [{ a: null }]],
    ['uniq', [1, '1', 1], [1, '1']],
    ['strip_html', 'a<script>x</script>b<!-- c -->d<style>y</style><p>e</p><f', 'abde<f'],
    ['escape_once', '<&lt;', '&lt;&lt;'],
    ['round: 2', 1.005, 1.01],
    ['plus: 1', '2.5', 3.5],
    ['base64_url_safe_encode', 'a?>', 'YT8-'],
    ['base64_url_safe_decode', 'YT8-', 'a?>'],
    ["date: '%F'", '2024-02-29', '2024-02-29'],
    ["date: '%F %T'", '2024-02-29T23:30:00-01:00', '2024-03-01 00:30:00'],
    ["date: '%T.%L'", '2024-02-29 23:30:05.1239 +0000', '23:30:05.123'],
    ["date: '%b %d, %y'", 'March 14, 2016', 'Mar 14, 16'],
    [
      "date: '%c|%x|%X|%r|%R|%D'",
      0,
      'Thu Jan  1 00:00:00 1970|01/01/70|00:00:00|12:00:00 AM|00:00|01/01/70',
    ],
    ["date: '%Y'", null, null],
    ["date: '%Y' | size", 'now', 4],
  ];
  for (const [call, data, result] of OURS) {
    it(`{{ ${JSON.stringify(data)} | ${call} }}`, () => {
      expect(evaluate(`{{ data | ${call} }}`, data)).to.deep.equal(result);
    });
  }

  const REFUSED: [string, unknown][] = [
    ['upcase', { a: 1 }],
    ['upcase', ['a']],
    ['append', 'x'],
    ["append: 'a', 'b'", 'x'],
    ['append: data', { a: 1 }],
    ["join: ','", [{ a: 1 }]],
    ['concat: 1', [1]],
    ['slice: 0, -1', 'abc'],
    ["slice: 'a'", 'abc'],
    ['slice: 0.5', 'abc'],
    ['slice: 0, 1e9', 'abc'],
    ['truncate: -1', 'abc'],
    ['plus: 1', 'abc'],
    ["plus: 'abc'", 1],
    ['plus: 1', true],
    ['plus: 1', [1]],
    ['divided_by: 0', 1],
    ['modulo: 0', 1],
    ['times: 9007199254740991', '1e300'],
    ['round: 100', 1],
    ['sum', ['x']],
    ['url_decode', '%zz'],
    ['url_encode', '\ud800'],
    ['base64_decode', '!!!!'],
    ['base64_decode', '/////w=='],
    ["date: '%Y'", '2023-02-29'],
    ["date: '%Y'", '2023-13-01'],
    ["date: '%Y'", '2023-01-01T24:00:00Z'],
    ["date: '%Y'", 'Foo 1, 2020'],
    ["date: '%Y'", 'yesterday'],
    ["date: '%Y'", true],
    ["date: '%Y'", 1e300],
    ["date: '%Y'", '1'.repeat(1000)],
  ];
  for (const [call, data] of REFUSED) {
    it(`refuses {{ ${JSON.stringify(data).slice(0, 20)} | ${call} }}`, () => {
      expect(problemOf(`{{ data | ${call} }}`, data)).to.be.instanceOf(ExpressionError);
    });
  }

  it('prints dates in UTC in every time zone of the server', () => {
    for (const name of ['Asia/Kolkata', 'America/New_York', 'UTC']) {
      process.env.TZ = name;
      expect(evaluate("{{ 1710054000 | date: '%F %T %Z' }}")).to.equal('2024-03-10 07:00:00 UTC');
      expect(evaluate("{{ data | date: '%F %T' }}", '2024-03-10')).to.equal('2024-03-10 00:00:00');
    }
  });
});
