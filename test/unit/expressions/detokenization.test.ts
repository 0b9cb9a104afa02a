import { expect } from 'chai';
import fc from 'fast-check';
import {
  compileDetokenization,
  NamedTokens,
  type TokenView,
} from '../../../shared/expressions/detokenization.ts';
import { compileDetokenizationBody } from '../../../shared/expressions/detokenization-body.ts';
import { ExpressionError } from '../../../shared/expressions/expression-error.ts';
import {
  DETOKENIZATION_EXPRESSIONS_MAX,
  DETOKENIZATION_OUTPUT_MAX,
  FILTERS_MAX,
  SOURCE_MAX,
} from '../../../shared/expressions/limits.ts';
import { Meter } from '../../../shared/expressions/meter.ts';
import { tokenIdProblem } from '../../../shared/tokens/token-id.ts';

const CARD = { number: '4242424242424242', expiration_month: 11, expiration_year: 2030 };

/** Tokens by id; the whole token has its data and some other members. */
function viewsOf(data: Record<string, unknown>): Map<string, TokenView> {
  return new Map(
    Object.entries(data).map(([id, value]) => [
      id,
      { data: value, token: { id, data: value, metadata: { name: 'Ann' } } },
    ]),
  );
}

const detokenize = (body: unknown, data: Record<string, unknown> = {}): unknown =>
  compileDetokenizationBody(body).evaluate(viewsOf(data));

/** One text, and what it names. */
function compile(source: string, named = new NamedTokens()) {
  return { named, insert: compileDetokenization(source, named) };
}

function failureOf(work: () => unknown): ExpressionError {
  try {
    work();
  } catch (error) {
    if (error instanceof ExpressionError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

const problemOf = (source: unknown, data: Record<string, unknown> = { abc: 'x' }): string =>
  failureOf(() => detokenize(source, data)).message;

describe('detokenization expressions', () => {
  describe('a text that is one expression', () => {
    const values: unknown[] = [CARD, [1, 'a'], 'text', '', 0, -0, 1.5, true, false, null];
    for (const value of values) {
      it(`becomes ${JSON.stringify(value)} with its type`, () => {
        expect(detokenize('{{ abc }}', { abc: value })).to.deep.equal(value);
      });
    }
    it('takes filters on the data of the token', () => {
      const data = { abc: CARD, pan: CARD.number };
      expect(detokenize("{{ abc | json: '$.number' }}", data)).to.equal(CARD.number);
      expect(detokenize("{{ abc | json: '$.expiration_month' }}", data)).to.equal(11);
      expect(detokenize('{{ pan | last4 }}', data)).to.equal('4242');
      expect(detokenize("{{ pan | slice: 0, 6 | append: '-' }}", data)).to.equal('424242-');
      expect(detokenize("{{ abc | json: '$.nothing' }}", data)).to.equal(null);
    });
    it('takes the whole token behind "token:"', () => {
      const data = { abc: CARD };
      const whole = { id: 'abc', data: CARD, metadata: { name: 'Ann' } };
      expect(detokenize('{{ token: abc }}', data)).to.deep.equal(whole);
      expect(detokenize('{{token:abc}}', data)).to.deep.equal(whole);
      expect(detokenize("{{ token: abc | json: '$.metadata.name' }}", data)).to.equal('Ann');
      expect(detokenize("{{ token: abc | json: '$.data.number' }}", data)).to.equal(CARD.number);
      expect(detokenize("{{ token: abc | json: '$.enrichments.x' }}", data)).to.equal(null);
    });
  });

  describe('an expression in other text', () => {
    it('is concatenated', () => {
      const data = { abc: '555', num: 7, yes: true, no: null };
      expect(detokenize('+1 {{ abc }}', data)).to.equal('+1 555');
      expect(detokenize('{{abc}}{{num}}', data)).to.equal('5557');
      expect(detokenize('{{ yes }}/{{ nob }}', { ...data, nob: null })).to.equal('true/');
      expect(detokenize(' {{ abc }}', data)).to.equal(' 555');
    });
    it('is compact JSON when it is complex', () => {
      expect(detokenize('card={{ abc }}', { abc: { a: [1, -0] } })).to.equal('card={"a":[1,-0]}');
    });
  });

  describe('the id', () => {
    it('is taken literally, whatever the language would make of it', () => {
      const ids = [
        '815029c2-29ec-4b1f-9f1e-1f2b3c4d5e6f',
        'data.number',
        'true',
        '4242 4242',
        'ann@example.com',
        'it\'s, a: "quote"',
        '-abc-',
        '日本語',
        'constructor',
        '__proto__',
      ];
      for (const id of ids) {
        expect(tokenIdProblem(id), id).to.equal(undefined);
        const tokens = new Map([[id, { data: 'here', token: {} }]]);
        for (const source of [`{{${id}}}`, `{{ ${id} }}`, `{{\t${id}\r\n}}`]) {
          const { named, insert } = compile(source);
          expect(named.tokenIds).to.deep.equal([id]);
          expect(insert?.(tokens, new Meter())).to.equal('here');
        }
        const { named, insert } = compile(`{{ ${id} | upcase }}`);
        expect(named.tokenIds).to.deep.equal([id]);
        expect(insert?.(tokens, new Meter())).to.equal('HERE');
      }
    });
    it('is collected once, in order of appearance', () => {
      const body = { a: '{{ two }} {{ one }}', b: ['{{ token: one }}', { c: '{{ three }}' }] };
      expect(compileDetokenizationBody(body).tokenIds).to.deep.equal(['two', 'one', 'three']);
    });
    it('may itself begin with "token:" behind the prefix', () => {
      expect(compile('{{ token: token:abc }}').named.tokenIds).to.deep.equal(['token:abc']);
    });
    it('says whether any token is put in whole', () => {
      const uses = (a: string) => compileDetokenizationBody({ a: ['{{ abc }}', a] }).usesWhole;
      const whole = ['{{ token: abc }}', '{{abc}}{{token:def | json: "$.id"}}'];
      for (const source of whole) expect(uses(source), source).to.equal(true);
      const data = ['{{ abc }}', 'token: {{ abc }}', "{{ abc | append: 'token:' }}", ''];
      for (const source of data) expect(uses(source), source).to.equal(false);
    });
    it('property: any legal id is found between any white space of the language', () => {
      const id = fc
        .string({ minLength: 3, maxLength: 40 })
        .filter((text) => tokenIdProblem(text) === undefined && !text.startsWith('token:'));
      const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 });
      fc.assert(
        fc.property(id, space, space, (text, before, after) => {
          const { named } = compile(`{{${before}${text}${after}}}`);
          expect(named.tokenIds).to.deep.equal([text]);
        }),
      );
    });
  });

  // Attack 76.
  for (const text of [
    '{ {abc} }',
    '｛｛abc｝｝',
    '{{\u00a0abc}}',
    '{{abc\u200b}}',
    '{{a\u200bbc}}',
    '{abc}',
    '{\u200b{abc} }',
  ]) {
    it(`sees no expression in ${JSON.stringify(text)}`, () => {
      expect(compileDetokenizationBody(text).tokenIds).to.deep.equal([]);
      expect(detokenize(text)).to.equal(text);
      expect(detokenize(`${text} {{abc}}`, { abc: 'x' })).to.equal(`${text} x`);
    });
  }

  // Attacks 66, 68 and 70.
  const malformed: [string, number | undefined][] = [
    ['{{', 0],
    ['}}', 0],
    ['x }} {{ abc }}', 2],
    ['{{ }}', 0],
    ['{{}}', 0],
    ['{{ token: }}', 0],
    ['{{{{abc}}}}', 0],
    ['{{ abc }} {{ def', 10],
    ['{{{abc}}}', 0],
    ['{{ ab }}', 0],
    ['{{ a/b/c }}', 0],
    ['{{ #each }}', 0],
    [`{{ ${'x'.repeat(401)} }}`, 0],
    ['{% for x in abc %}{{ abc }}{% endfor %}', 0],
    ['{% include "/etc/passwd" %}', 0],
    ['{{ abc | }}', 9],
    ['{{ abc | nothing }}', 9],
    ['ü {{ abc | nothing }}', 11],
    ['{{ token: abc | nothing }}', 16],
    ['{{ abc | upcase: 1 }}', 9],
    ['{{ abc | reveal_last: -1 }}', 9],
    ['{{ abc | upcase -}}', 16],
    [`{{ abc | append: '${'x'.repeat(SOURCE_MAX)}' }}`, undefined],
    [`{{ abc${' | upcase'.repeat(FILTERS_MAX + 1)} }}`, 7 + FILTERS_MAX * 9 + 2],
  ];
  for (const [source, position] of malformed) {
    it(`refuses ${source.slice(0, 50)}`, () => {
      const error = failureOf(() => compile(source));
      expect(error.position).to.equal(position);
      expect(error.message).not.to.contain('nothing').and.not.contain('passwd');
    });
  }

  it('names the position of what fails only on the data', () => {
    const error = failureOf(() => detokenize('ab {{ abc | to_number }}', { abc: 'secret' }));
    expect(error.position).to.equal(12);
    expect(error.message).not.to.contain('secret');
  });

  describe('in a body', () => {
    it('are replaced at any depth, in values only', () => {
      const body = {
        '{{ abc }}': 'name',
        list: [1, ['{{ abc }}', null], { deep: { deeper: '{{ abc }}!' } }],
        kept: { text: 'plain', number: 1.5 },
      };
      expect(detokenize(body, { abc: 'x' })).to.deep.equal({
        '{{ abc }}': 'name',
        list: [1, ['x', null], { deep: { deeper: 'x!' } }],
        kept: { text: 'plain', number: 1.5 },
      });
    });
    it('leave the body itself as it was', () => {
      const body = { a: ['{{ abc }}'], b: { c: 1 } };
      const before = structuredClone(body);
      detokenize(body, { abc: 'x' });
      expect(body).to.deep.equal(before);
    });
    it('keep members named __proto__ as members', () => {
      const body = JSON.parse('{"__proto__":{"x":"{{ abc }}"},"constructor":"{{ abc }}"}');
      const result = detokenize(body, { abc: { polluted: true } }) as Record<string, unknown>;
      expect(JSON.stringify(result)).to.equal(
        '{"__proto__":{"x":{"polluted":true}},"constructor":{"polluted":true}}',
      );
      expect(Object.getPrototypeOf(result)).to.equal(Object.prototype);
      expect(({} as { polluted?: boolean }).polluted).to.equal(undefined);
    });
    it('may be the body', () => {
      expect(detokenize('{{ abc }}', { abc: CARD })).to.deep.equal(CARD);
      for (const body of [null, 1, true, [], {}, 'x']) expect(detokenize(body)).to.equal(body);
    });

    // Attack 74.
    it('are looked for once: data that looks like an expression stays data', () => {
      const data = { abc: '{{ def }}', def: 'never', obj: { a: '{{ def }}', '{{ def }}': 1 } };
      expect(detokenize({ a: '{{ abc }}', b: '-{{ abc }}-', c: '{{ obj }}' }, data)).to.deep.equal({
        a: '{{ def }}',
        b: '-{{ def }}-',
        c: { a: '{{ def }}', '{{ def }}': 1 },
      });
      expect(detokenize('{{ abc }}{ {{ abc | size }} }', data)).to.equal('{{ def }}{ 9 }');
    });

    it('are named by their path when they are wrong, unless the names could be data', () => {
      const pathOf = (body: unknown) => failureOf(() => detokenize(body, { abc: 'x' })).path;
      expect(pathOf({ card: { number: '{{' } })).to.equal('card.number');
      expect(pathOf([0, { a_1: ['{{ abc | to_number }}'] }])).to.equal('1.a_1.0');
      expect(pathOf('{{')).to.equal('body');
      expect(pathOf({ 4242424242424242: { 'ann@example.com': ['}}'] } })).to.equal('*.*.0');
      expect(pathOf({ ['x'.repeat(41)]: '{{' })).to.equal('*');
      const named = failureOf(() => compileDetokenizationBody({ a: '{{' }, 'args'));
      expect(named.path).to.equal('args.a');
    });
  });

  describe('limits', () => {
    it('bound what all expressions inject together', () => {
      const abc = 'x'.repeat(DETOKENIZATION_OUTPUT_MAX / 4);
      expect(detokenize(['{{ abc }}', '{{ abc }}', '{{ abc }}'], { abc })).to.have.length(3);
      expect(problemOf(['{{ abc }}', '{{ abc }}', '{{ abc }}', '{{ abc }}'], { abc })).to.contain(
        'too long',
      );
      expect(problemOf('{{ abc }}{{ abc }}{{ abc }}{{ abc }}', { abc })).to.contain('too long');
    });
    it('count what a value is long as JSON', () => {
      const numbers = Array.from(
        { length: 50_000 },
        (_, index) => 1.234567890123e-100 * (index + 1),
      );
      const size = JSON.stringify(numbers).length;
      const fitting = Math.floor(DETOKENIZATION_OUTPUT_MAX / size);
      const uses = (count: number) => Array.from({ length: count }, () => '{{ abc }}');
      expect(detokenize(uses(fitting), { abc: numbers })).to.have.length(fitting);
      expect(problemOf(uses(fitting + 1), { abc: numbers })).to.contain('too long');
      const escapes = '\u0001'.repeat(DETOKENIZATION_OUTPUT_MAX / 6 + 1);
      expect(problemOf('{{ abc }}', { abc: escapes })).to.contain('too long');
    });
    it('bound the number of expressions in one text and in all', () => {
      const max = DETOKENIZATION_EXPRESSIONS_MAX;
      expect(detokenize('{{abc}}'.repeat(max), { abc: 'x' })).to.have.length(max);
      expect(problemOf('{{abc}}'.repeat(max + 1))).to.contain(String(max));
      expect(problemOf('{{abc}}'.repeat(700_000))).to.contain(String(max));
      expect(problemOf(Array.from({ length: max + 1 }, () => '{{abc}}'))).to.contain(String(max));
    });
    it('bound the work of all expressions together', () => {
      const abc = 'x'.repeat(1024 * 1024);
      const body = Array.from({ length: 100 }, () => "{{ abc | replace: 'y', '' | size }}");
      expect(problemOf(body, { abc })).to.contain('work');
    });
  });
});
