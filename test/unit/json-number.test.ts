import { expect } from 'chai';
import fc from 'fast-check';
import { ApiError } from '../../shared/errors.ts';
import { parseJson, stringifyJson } from '../../shared/json-text.ts';

const parse = (text: string): unknown => parseJson(Buffer.from(text));

function refusal(text: string): string {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
  throw new Error('the number was accepted');
}

describe('parseJson: numbers', () => {
  for (const literal of [
    '1e400',
    '-1e400',
    '1e-400',
    '12345678901234567890',
    '9007199254740993',
    '0.1000000000000000055',
    '1.00000000000000000001',
    '0.30000000000000004441',
    '1e99999999999999999999',
    `${'9'.repeat(400)}`,
    `0.${'0'.repeat(400)}1`,
    '2e-324',
    '1e309',
    '999999999999999e294',
    '123456789012345e-331',
  ]) {
    it(`refuses ${literal.slice(0, 40)}`, () => {
      expect(refusal(`[${literal}]`)).to.match(/cannot be kept exactly .* line 1, column 2$/);
    });
  }

  for (const [literal, value] of [
    ['1.0', 1],
    ['1E2', 100],
    ['1e+2', 100],
    ['0.1', 0.1],
    ['0.30000000000000004', 0.30000000000000004],
    ['1e21', 1e21],
    ['1000000000000000000000', 1e21],
    ['9007199254740992', 9007199254740992],
    ['5e-324', 5e-324],
    ['1.7976931348623157e308', Number.MAX_VALUE],
    ['0.000001', 0.000001],
    ['123456789012345', 123456789012345],
    [`1${'.'}${'0'.repeat(5000)}`, 1],
    ['0e999999999', 0],
    ['1e306', 1e306],
    ['1e308', 1e308],
    ['123456789012345e292', 123456789012345e292],
    ['0.0000000000001e-292', 1e-305],
    ['1E-00000000000000000009', 1e-9],
  ] as const) {
    it(`accepts ${literal.slice(0, 40)}`, () => {
      expect(parse(`[${literal}]`)).to.deep.equal([value]);
    });
  }

  it('keeps the sign of -0 in and out', () => {
    for (const literal of ['-0', '-0.0', '-0e5']) {
      expect(Object.is(parse(literal), -0), literal).to.equal(true);
    }
    expect(stringifyJson(parse('{"a":-0,"b":[0,-0]}'))).to.equal('{"a":-0,"b":[0,-0]}');
  });

  it('accepts every double as JavaScript prints it, and gives back the same one', () => {
    const double = fc.double({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(double, (number) => {
        expect(Object.is(parse(stringifyJson(number)), number)).to.equal(true);
      }),
    );
  });

  it('accepts a decimal exactly when the printed double has the same value', () => {
    const literal = fc
      .tuple(fc.bigInt({ min: 1n, max: 10n ** 20n }), fc.integer({ min: -30, max: 30 }))
      .map(([digits, exponent]) => ({ digits, exponent, text: `${digits}e${exponent}` }));
    fc.assert(
      fc.property(literal, ({ digits, exponent, text }) => {
        const [mantissa = '', power = '0'] = Number(text).toExponential().split('e');
        const [whole = '', fraction = ''] = mantissa.split('.');
        const shift = exponent - (Number(power) - fraction.length);
        const printed = BigInt(whole + fraction);
        const exact =
          shift >= 0
            ? digits * 10n ** BigInt(shift) === printed
            : digits === printed * 10n ** BigInt(-shift);
        if (exact) expect(parse(text)).to.equal(Number(text));
        else refusal(text);
      }),
    );
  });
});
