import { expect } from 'chai';
import fc from 'fast-check';
import { isCardNumber, isRoutingNumber } from '../../../shared/tokens/numbers.ts';

const ROUTING = '021000021';

/** Digits completed to a Luhn-valid number, written from the definition in words. */
function withCheckDigit(digits: string): string {
  let total = 0;
  for (const [index, digit] of [...digits].reverse().entries()) {
    const doubled = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9][Number(digit)] ?? 0;
    total += index % 2 === 0 ? doubled : Number(digit);
  }
  return digits + String((10 - (total % 10)) % 10);
}

const digits = (min: number, max: number) =>
  fc.stringMatching(new RegExp(`^[0-9]{${min},${max}}$`));

describe('check digits', () => {
  it('make one of ten numbers of 13 to 19 digits a card number', () => {
    fc.assert(
      fc.property(digits(12, 18), (body) => {
        const valid = withCheckDigit(body);
        const all = [...'0123456789'].map((digit) => body + digit);
        expect(all.filter(isCardNumber)).to.deep.equal([valid]);
      }),
    );
  });

  it('of a routing number notice every single wrong digit', () => {
    const position = fc.integer({ min: 0, max: 8 });
    fc.assert(
      fc.property(position, fc.integer({ min: 1, max: 9 }), (index, shift) => {
        const wrong = [...ROUTING];
        wrong[index] = String((Number(wrong[index]) + shift) % 10);
        expect(isRoutingNumber(wrong.join(''))).to.equal(false);
      }),
    );
    expect(isRoutingNumber(ROUTING)).to.equal(true);
  });
});
