import { expect } from 'chai';
import fc from 'fast-check';
import { compileTemplate } from '../../../shared/expressions/compile.ts';
import { ExpressionError } from '../../../shared/expressions/expression-error.ts';
import { FILTERS } from '../../../shared/expressions/filters/catalogue.ts';
import {
  FILTERS_MAX,
  FINGERPRINT_OUTPUT_MAX,
  OUTPUT_MAX,
  SOURCE_MAX,
} from '../../../shared/expressions/limits.ts';
import { evaluateMask } from '../../../shared/expressions/mask.ts';
import { Meter } from '../../../shared/expressions/meter.ts';
import { evaluate, problemOf } from './evaluate.ts';

/** Work that an evaluation has done; what it would cost without a limit shows as a refusal. */
function workOf(source: string, data: unknown): number {
  const meter = new Meter();
  const before = meter.workLeft;
  try {
    compileTemplate(source).evaluate({ data }, meter);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
  }
  return before - meter.workLeft;
}

describe('limits of expressions', () => {
  it('bounds the source', () => {
    const source = `{{ data }}${'x'.repeat(SOURCE_MAX - 10)}`;
    expect(evaluate(source, 'a')).to.have.length(SOURCE_MAX - 9);
    problemOf(`${source}x`);
  });

  // Attack 69.
  it('bounds the number of filters', () => {
    const chain = (count: number) => `{{ data${' | append: data'.repeat(count)} }}`;
    expect(evaluate(chain(FILTERS_MAX), 'a')).to.equal('a'.repeat(FILTERS_MAX + 1));
    problemOf(chain(FILTERS_MAX + 1), 'a');
    problemOf(chain(24), 'a');
    problemOf(chain(100_000), 'a');
  });

  it('refuses long results before they are made', () => {
    const half = 'x'.repeat(OUTPUT_MAX / 2);
    const doubling = " | split: '' | join: '0123456789'";
    const sources = [
      `{{ data${' | append: data'.repeat(20)} }}`,
      `{{ data${' | prepend: data'.repeat(20)} }}`,
      "{{ data | replace: 'x', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy' }}",
      `{{ data | replace: 'x', data }}`,
      `{{ data | slice: 0, 200${doubling.repeat(5)} }}`,
      "{{ data | pad_left: 1000000000, 'x' }}",
      "{{ data | split: '' | concat: data | size }}",
      '{{ data }}{{ data }}{{ data }}',
      '{{ data | escape | escape | url_encode }}{{ data }}{{ data }}',
    ];
    for (const source of sources) problemOf(source, half);
    expect(evaluate('{{ data }}', half + half)).to.have.length(OUTPUT_MAX);
    problemOf('{{ data }}', `${half}${half}x`);
    problemOf('{{ data }}', [half, half]);
    problemOf('-{{ data }}', { a: half, b: half });
  });

  it('lets a caller allow longer results', () => {
    const data = { text: 'x'.repeat(1_000_000) };
    problemOf('{{ data | stringify }}', data);
    const meter = new Meter(FINGERPRINT_OUTPUT_MAX);
    const text = compileTemplate('{{ data | stringify }}').evaluate({ data }, meter);
    expect(text).to.equal(JSON.stringify(data));
    const many = compileTemplate('{{ data | stringify }}'.repeat(50));
    expect(() => many.evaluate({ data }, new Meter(FINGERPRINT_OUTPUT_MAX))).to.throw(
      ExpressionError,
    );
  });

  it('counts the reading of large inputs, however small the result', () => {
    const big = 'a'.repeat(1_000_000);
    for (const filter of ["remove: 'b'", 'size', "replace_first: 'b', 'c'", 'slice: -1']) {
      expect(workOf(`{{ data | ${filter} }}`, big), filter).to.be.at.least(OUTPUT_MAX);
      const leaves = Array.from({ length: 20 }, () => `{{ data | ${filter} | size }}`);
      const values = evaluateMask(leaves, { data: big }) as unknown[];
      expect(values.at(-1), filter).to.equal(null);
    }
  });

  // `lastIndexOf` of this pattern in 1 MB takes over a minute.
  it('refuses searches that compare too much', () => {
    const text = 'a'.repeat(1_000_000);
    const data = { text, from: `${'a'.repeat(500_000)}b`, to: `b${'a'.repeat(500_000)}` };
    for (const name of ['remove', 'remove_first', 'remove_last', 'split']) {
      problemOf(`{{ data.text | ${name}: data.from | size }}`, data);
      problemOf(`{{ data.text | ${name}: data.to | size }}`, data);
    }
    problemOf("{{ data.text | replace_last: data.from, '' | size }}", data);
  });

  it('strips HTML in linear time', () => {
    const openers = '<script<style<!--'.repeat(3000);
    expect(evaluate('{{ data | strip_html }}', openers)).to.equal(openers);
  });

  it('has no format that asks for a long result', () => {
    for (const format of ['%9999999d', '%31d', '%0000000031Y', '%99999999999N', '%', '%Q', '%-']) {
      problemOf(`{{ 0 | date: '${format}' }}`);
    }
    problemOf(`{{ 0 | date: '${'%30d'.repeat(60)}' }}`);
    problemOf('{{ 0 | date: data }}', '%d'.repeat(1000));
  });

  it('shares one meter among templates', () => {
    const meter = new Meter(10);
    const template = compileTemplate('{{ data }}');
    expect(template.evaluate({ data: '123456' }, meter)).to.equal('123456');
    expect(() => template.evaluate({ data: '123456' }, meter)).to.throw(ExpressionError);
    expect(template.evaluate({ data: '1234' }, meter)).to.equal('1234');
    expect(meter.exhausted).to.equal(true);
  });
});

describe('any template over any data', () => {
  const words = [
    '{{ ',
    ' }}',
    '{{-',
    '-}}',
    ' | ',
    ': ',
    ', ',
    'data',
    '.a',
    '[0]',
    '["a"]',
    "'x'",
    '"%Y"',
    '$..a',
    '1',
    '-2',
    '0.5',
    'true',
    'nil',
    '\u00a0',
    '\ud800',
    '{%',
    ...FILTERS.keys(),
  ];
  const noise = fc.array(fc.constantFrom(...words), { maxLength: 30 }).map((list) => list.join(''));
  const argument = fc.constantFrom(
    '0',
    '3',
    '-1',
    "''",
    "'a'",
    'true',
    'nil',
    'data',
    'data.a',
    "'$.a'",
  );
  const call = fc
    .tuple(fc.constantFrom(...FILTERS.keys()), fc.array(argument, { maxLength: 3 }))
    .map(([name, list]) => ` | ${name}${list.length === 0 ? '' : `: ${list.join(', ')}`}`);
  const wellFormed = fc
    .tuple(fc.constantFrom('data', 'data.a', "'abc'", '12'), fc.array(call, { maxLength: 4 }))
    .map(([head, calls]) => `{{ ${head}${calls.join('')} }}`);
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.record({ a: fc.jsonValue({ maxDepth: 2 }) }),
    fc.array(fc.record({ a: fc.oneof(fc.string(), fc.integer()) })),
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  );

  it('throws nothing but ExpressionError and stays within the output limit', () => {
    let evaluated = 0;
    fc.assert(
      fc.property(fc.oneof(noise, wellFormed, fc.string()), value, (source, data) => {
        const before = JSON.stringify(data);
        try {
          const result = compileTemplate(source).evaluate({ data });
          evaluated += 1;
          expect(result).to.not.equal(undefined);
          expect(JSON.stringify(result).length).to.be.at.most(6 * OUTPUT_MAX);
        } catch (error) {
          expect(error).to.be.instanceOf(ExpressionError);
        }
        expect(JSON.stringify(data)).to.equal(before);
      }),
      { numRuns: 3000 },
    );
    expect(evaluated).to.be.greaterThan(300);
  });

  it('leaves a mask leaf of any text without the number it hides', () => {
    const number = '4242424242424242';
    fc.assert(
      fc.property(fc.string(), (tail) => {
        // Whatever follows the path without a pipe, the leaf is refused or empty.
        const source = `{{ data.number , ${tail.replaceAll(/[{}]/g, '')} }}`;
        const leaf = evaluateMask(source, { data: { number } });
        expect(leaf).to.equal(undefined);
      }),
      { numRuns: 500 },
    );
  });
});
