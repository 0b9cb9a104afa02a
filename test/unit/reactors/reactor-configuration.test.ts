import { expect } from 'chai';
import type { ConfigurationDeclaration } from '../../../shared/api/reactor-formulas.ts';
import { castValue } from '../../../shared/reactors/cast-value.ts';
import {
  castConfiguration,
  configurationProblems,
} from '../../../shared/reactors/reactor-configuration.ts';

const DECLARED: ConfigurationDeclaration[] = [
  { name: 'KEY', type: 'string' },
  { name: 'RETRIES', type: 'number' },
  { name: 'LIVE', type: 'boolean' },
];
const FITTING = { KEY: 'k-1', RETRIES: '3', LIVE: 'TRUE' };

describe('castValue', () => {
  const cases: [Parameters<typeof castValue>[0], unknown, unknown][] = [
    ['string', 'x', 'x'],
    ['string', 1.5, '1.5'],
    ['string', false, 'false'],
    ['string', null, undefined],
    ['string', {}, undefined],
    ['string', ['x'], undefined],
    ['number', 7, 7],
    ['number', '-0.5', -0.5],
    ['number', '1e2', 100],
    ['number', '', undefined],
    ['number', ' 1', undefined],
    ['number', '0x10', undefined],
    ['number', 'Infinity', undefined],
    ['number', '12345678901234567890', undefined],
    ['number', true, undefined],
    ['number', { valueOf: () => 1 }, undefined],
    ['boolean', true, true],
    ['boolean', 'True', true],
    ['boolean', 'FALSE', false],
    ['boolean', 'yes', undefined],
    ['boolean', '1', undefined],
    ['boolean', 1, undefined],
    ['boolean', '', undefined],
  ];
  for (const [type, value, expected] of cases) {
    it(`casts ${JSON.stringify(value)} to a ${type}: ${expected}`, () => {
      expect(castValue(type, value)).to.equal(expected);
    });
  }
});

describe('configurationProblems', () => {
  it('finds none in what fits, nor in a null value', () => {
    expect(configurationProblems(DECLARED, FITTING)).to.deep.equal({});
    expect(configurationProblems(DECLARED, { ...FITTING, LIVE: null })).to.deep.equal({});
    expect(configurationProblems([], {})).to.deep.equal({});
  });

  it('names what is missing and what does not cast, and counts what is too much', () => {
    const problems = configurationProblems(DECLARED, { RETRIES: 'secret-7', mine: 'secret-8' });
    expect(problems).to.have.all.keys(
      ...['configuration.KEY', 'configuration.RETRIES', 'configuration.LIVE', 'configuration'],
    );
    expect(JSON.stringify(problems)).not.to.match(/secret|mine/);
  });

  it('takes nothing inherited for a value', () => {
    const declared: ConfigurationDeclaration[] = [{ name: 'toString', type: 'string' }];
    expect(configurationProblems(declared, {})).to.have.all.keys('configuration.toString');
    expect(castConfiguration(declared, {})).to.deep.equal({});
  });
});

describe('castConfiguration', () => {
  it('gives declared names values of their types', () => {
    const cast = castConfiguration(DECLARED, FITTING);
    expect(cast).to.deep.equal({ KEY: 'k-1', RETRIES: 3, LIVE: true });
  });

  it('keeps null, and leaves out what is not declared or does not fit', () => {
    const cast = castConfiguration(DECLARED, { KEY: null, RETRIES: 'many', mine: 'x' });
    expect(cast).to.deep.equal({ KEY: null });
  });

  it('passes everything as it is without declarations', () => {
    expect(castConfiguration(undefined, FITTING)).to.deep.equal(FITTING);
  });
});
