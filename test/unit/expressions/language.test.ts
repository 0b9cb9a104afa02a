import { expect } from 'chai';
import { compileTemplate, hasExpression } from '../../../shared/expressions/compile.ts';
import { evaluate, problemOf } from './evaluate.ts';

const DATA = {
  number: '4242424242424242',
  month: 12,
  ok: false,
  nothing: null,
  list: [1, 'two', { three: 3 }],
  'first-name': 'Ann',
  'with space': 'yes',
  '3ds': { version: 2 },
  ключ: 'cyrillic',
  template: '{{ data.number }}',
};

describe('expression language', () => {
  it('leaves text without expressions as it is', () => {
    for (const source of ['', 'plain', 'a | b', '{ {id} }', '50 %}', '\u{ff5b}\u{ff5b}x\u{ff5d}']) {
      expect(hasExpression(source)).to.equal(false);
      expect(evaluate(source)).to.equal(source);
      expect(compileTemplate(source).hasExpressions).to.equal(false);
    }
    expect(compileTemplate('{{ data }}').hasExpressions).to.equal(true);
  });

  it('keeps the JSON type when the source is exactly one expression', () => {
    expect(evaluate('{{ data.month }}', DATA)).to.equal(12);
    expect(evaluate('{{data.ok}}', DATA)).to.equal(false);
    expect(evaluate('{{ data.nothing }}', DATA)).to.equal(null);
    expect(evaluate('{{ data.list }}', DATA)).to.deep.equal(DATA.list);
    expect(evaluate('{{ data }}', DATA)).to.equal(DATA);
  });

  it('concatenates text in mixed templates', () => {
    expect(evaluate('cust-{{ data.month }}', DATA)).to.equal('cust-12');
    expect(evaluate(' {{ data.month }}', DATA)).to.equal(' 12');
    expect(evaluate('{{ data.month }}|{{ data.ok }}', DATA)).to.equal('12|false');
    expect(evaluate('[{{ data.nothing }}{{ data.missing }}]', DATA)).to.equal('[]');
    expect(evaluate('x {{ data.list }}', DATA)).to.equal('x [1,"two",{"three":3}]');
    expect(evaluate('{"a":{{ data.month }}}', DATA)).to.equal('{"a":12}');
  });

  it('reads names, quoted names and indexes', () => {
    const cases: [string, unknown][] = [
      ['{{ data["number"] }}', DATA.number],
      ["{{ data['with space'] }}", 'yes'],
      ['{{ data["ключ"] }}', 'cyrillic'],
      ['{{ data.first-name }}', 'Ann'],
      ['{{ data.3ds.version }}', 2],
      ['{{ data.list[1] }}', 'two'],
      ['{{ data.list[-1].three }}', 3],
      ['{{ data.list[2]["three"] }}', 3],
      ['{{ data . list [ 0 ] }}', 1],
      ['{{ data.list.size }}', 3],
      ['{{ data.list.first }}', 1],
      ['{{ data.list.last.three }}', 3],
    ];
    for (const [source, value] of cases) expect(evaluate(source, DATA), source).to.equal(value);
  });

  it('gives null for what is not there', () => {
    for (const path of ['missing', 'missing.deep', 'list[9]', 'list[-9]', 'month.x', 'list.nope']) {
      expect(evaluate(`{{ data.${path} }}`, DATA), path).to.equal(null);
    }
    expect(evaluate('{{ nobody }}', DATA)).to.equal(null);
    expect(evaluate('{{ data[0] }}', { 0: 'no list' })).to.equal(null);
  });

  // Attack 67.
  it('never reads inherited members, lengths or characters', () => {
    const names = [
      ...Object.getOwnPropertyNames(Object.prototype),
      ...Object.getOwnPropertyNames(Array.prototype),
      ...Object.getOwnPropertyNames(String.prototype),
    ];
    for (const name of names) {
      expect(evaluate(`{{ data["${name}"] }}`, {}), name).to.equal(null);
      expect(evaluate(`{{ data["${name}"] }}`, []), name).to.equal(null);
      expect(evaluate(`{{ data.number["${name}"] }}`, DATA), name).to.equal(null);
      expect(evaluate(`{{ data | json: "$['${name}']" }}`, {}), name).to.equal(null);
      expect(evaluate(`{{ data | map: '${name}' | first }}`, [{}]), name).to.equal(null);
    }
    expect(evaluate('{{ constructor }}')).to.equal(null);
    expect(evaluate('{{ data.number[0] }}', DATA)).to.equal(null);
    const own = JSON.parse('{"__proto__": 1, "constructor": 2}');
    expect(evaluate('{{ data.__proto__ }}{{ data.constructor }}', own)).to.equal('12');
  });

  it('reads literals', () => {
    expect(evaluate('{{ "a|b" }}')).to.equal('a|b');
    expect(evaluate("{{ 'back\\slash' }}")).to.equal('back\\slash');
    expect(evaluate('{{ -12.50 }}')).to.equal(-12.5);
    expect(evaluate('{{ true }}{{ false }}{{ nil }}{{ null }}')).to.equal('truefalse');
  });

  it('takes paths and named arguments as filter arguments', () => {
    expect(evaluate('{{ data.a | append: data.b }}', { a: 'x', b: 'y' })).to.equal('xy');
    expect(evaluate('{{ data.a | append: data.none }}', { a: 'x' })).to.equal('x');
    expect(evaluate('{{ data.a | default: 1, allow_false: true }}', { a: false })).to.equal(false);
    expect(evaluate('{{ data.a | default: 1 }}', { a: false })).to.equal(1);
  });

  it('cuts white space beside dashes', () => {
    expect(evaluate('a {{- data -}} \n b', 1)).to.equal('a1b');
    expect(evaluate(' {{- data -}} ', 1)).to.equal(1);
  });

  it('does not evaluate inserted data again', () => {
    expect(evaluate('{{ data.template }}', DATA)).to.equal('{{ data.number }}');
    expect(evaluate('-{{ data.template | append: "" }}', DATA)).to.equal('-{{ data.number }}');
  });
});

describe('malformed expressions', () => {
  // Attacks 66, 68, 76.
  const SOURCES = [
    '{{',
    '}}',
    '{{ }}',
    '{{}}',
    '{{-}}',
    '{{ - }}',
    '{{{{x}}}}',
    '{{{x}}}',
    '{{ a }} {{ b',
    '{{ a }} }}',
    'a }} {{ b }}',
    '{{ a {{ b }}',
    '{% for x in data %}{% endfor %}',
    '{% include "/etc/passwd" %}',
    '{% raw %}',
    '{{ "{% raw %}" }}',
    '{{ data.}}',
    '{{ data..x }}',
    '{{ .data }}',
    '{{ data[] }}',
    '{{ data[0 }}',
    '{{ data[x] }}',
    '{{ data[1.5] }}',
    '{{ data | }}',
    '{{ | upcase }}',
    '{{ data || upcase }}',
    '{{ data | upcase: }}',
    '{{ data | append: "x", }}',
    '{{ data | append: "x" "y" }}',
    '{{ data | append "x" }}',
    '{{ data, reveal_last: 4 }}',
    '{{ data reveal_last }}',
    "{{ 'a' 'b' }}",
    "{{ 'unclosed }}",
    '{{ "}}" }}',
    '{{ 1e9 }}',
    '{{ 1.x }}',
    '{{ 12345678901234567890 }}',
    '{{ 0.1000000000000000055 }}',
    '{{ data\u00a0}}',
    '{{\u00a0data }}',
    '{{ da\u200bta }}',
    '{{ dåta }}',
    '{{ data | default: 1, allow_false: true, allow_false: true }}',
    '{{ data | default: 1, nope: true }}',
    '{{ data | default: 1, constructor: true }}',
  ];
  for (const source of SOURCES) {
    it(`refuses ${JSON.stringify(source)}`, () => {
      expect(hasExpression(source)).to.equal(true);
      expect(problemOf(source, {}).position).to.be.a('number');
    });
  }

  it('says where, and never repeats the source or the data', () => {
    const secret = '4111111111111111';
    const problems = [
      problemOf(`{{ data.${'x'.repeat(3)} | nosuch${secret}: '${secret}' }}`),
      problemOf(`{{ data | reveal_last: '${secret}' }}`),
      problemOf(`{{ data | json: '$.${secret}[' }}`),
      problemOf(`{{ ${secret}${secret} }}`),
      problemOf('{{ data | to_number }}', `${secret}x`),
      problemOf('{{ data | date: "%Y" }}', secret),
      problemOf('{{ data | url_decode }}', `%z${secret}`),
    ];
    for (const problem of problems) {
      expect(problem.message).to.match(/ \(at character \d+\)$/);
      expect(problem.message).to.not.include(secret);
      expect(problem.cause).to.equal(undefined);
    }
    expect(problemOf('ab {{ data | nope }}').position).to.equal(13);
  });

  it('names the filter that was probably meant', () => {
    const meant = {
      revael_last: 'reveal_last',
      card_maks: 'card_mask',
      upcas: 'upcase',
      Downcase: 'downcase',
      tostring: 'to_string',
      'reveal-last': 'reveal_last',
    };
    for (const [written, known] of Object.entries(meant)) {
      const { message } = problemOf(`{{ data | ${written}: 4 }}`);
      expect(message).to.equal(`Unknown filter, did you mean ${known}? (at character 10)`);
    }
    const others = ['nope', 'mask', 'bin', 'sha256', 'constructor', 'x'.repeat(4000)];
    for (const written of others) {
      const { message } = problemOf(`{{ data | ${written} }}`);
      expect(message, written).to.equal('Unknown filter (at character 10)');
    }
  });
});
