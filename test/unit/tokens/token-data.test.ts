import { expect } from 'chai';
import creditCardType from 'credit-card-type';
import { readTokenData } from '../../../shared/tokens/token-data.ts';
import { errorsOf } from './data-errors.ts';

const NUMBER = '4242424242424242';

/** Facts 5.1, test numbers. */
const CARD_NUMBERS = [
  '4242424242424242',
  '5555555555554444',
  '378282246310005',
  '6011111111111117',
  '3056930009020004',
  '3566002020360505',
  '6200000000000005',
  '6011000990139424',
  '5105105105105100',
];

describe('readTokenData: any type', () => {
  it('requires data', () => {
    for (const type of ['token', 'card', 'bank', 'card_number'] as const) {
      expect(errorsOf(type, null)).to.deep.equal({ data: ['Data is required'] });
      expect(errorsOf(type, undefined)).to.deep.equal({ data: ['Data is required'] });
    }
  });

  it('keeps generic data as it is, falsy values included', () => {
    for (const data of ['', 0, -0, false, [], {}, 'x', { cvc: '123', number: 'x' }, [null]]) {
      const read = readTokenData('token', data);
      expect(Object.is(read.data, data)).to.equal(true);
      expect(read.cvc).to.equal(undefined);
    }
  });
});

describe('readTokenData: card', () => {
  it('accepts the well-known test numbers', () => {
    for (const number of CARD_NUMBERS) {
      expect(readTokenData('card', { number })).to.deep.equal({ data: { number }, cvc: undefined });
      expect(creditCardType(number)).to.not.have.length(0);
    }
  });

  it('coerces month, year and cvc, takes cvc out, drops what it does not know', () => {
    const read = readTokenData('card', {
      cvc: 123,
      expiration_year: '2030',
      expiration_month: '02',
      name: 'A. Person',
      number: NUMBER,
      track2: 'x',
    });
    expect(read.cvc).to.equal('123');
    expect(JSON.stringify(read.data)).to.equal(
      `{"number":"${NUMBER}","expiration_month":2,"expiration_year":2030}`,
    );
  });

  it('leaves out members that are null', () => {
    const data = { number: NUMBER, expiration_month: null, expiration_year: null, cvc: null };
    expect(readTokenData('card', data)).to.deep.equal({ data: { number: NUMBER }, cvc: undefined });
  });

  it('does not change the data it was given', () => {
    const data = Object.freeze({ number: NUMBER, cvc: '123', expiration_month: '1' });
    expect(readTokenData('card', data).data).to.not.have.property('cvc');
    expect(data.cvc).to.equal('123');
  });

  for (const [what, number] of [
    ['missing', undefined],
    ['null', null],
    ['a JSON number', 4242424242424242],
    ['12 digits that pass Luhn', '424242424242'],
    ['20 digits that pass Luhn', '42424242424242424242'],
    ['grouped by spaces', '4242 4242 4242 4242'],
    ['grouped by dashes', '4242-4242-4242-4242'],
    ['letters', '424242424242424a'],
    ['a bad check digit', '4242424242424241'],
    ['Arabic digits', '٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢'],
    ['fullwidth digits', '４２４２４２４２４２４２４２４２'],
    ['a line break at the end', `${NUMBER}\n`],
    ['empty', ''],
    ['a list', [NUMBER]],
    ['an object', { toString: NUMBER }],
    ['a megabyte', '0'.repeat(1_000_000)],
  ] as const) {
    it(`refuses a number that is ${what}`, () => {
      expect(errorsOf('card', { number })).to.have.all.keys('data.number');
    });
  }

  for (const month of [
    0,
    13,
    -1,
    1.5,
    '',
    '0',
    '13',
    '1.5',
    '001',
    ' 1',
    '+1',
    '1e0',
    true,
    [1],
    {},
  ]) {
    it(`refuses the month ${JSON.stringify(month)}`, () => {
      const errors = errorsOf('card', { number: NUMBER, expiration_month: month });
      expect(errors).to.have.all.keys('data.expiration_month');
    });
  }

  for (const year of [
    1999,
    26,
    99999,
    0,
    -2030,
    2030.5,
    '26',
    '1999',
    '02030',
    '2e3',
    '',
    true,
    [],
  ]) {
    it(`refuses the year ${JSON.stringify(year)}`, () => {
      const errors = errorsOf('card', { number: NUMBER, expiration_year: year });
      expect(errors).to.have.all.keys('data.expiration_year');
    });
  }

  it('accepts months as numbers and text, and years that are past', () => {
    for (const [month, stored] of [
      [1, 1],
      [12, 12],
      ['1', 1],
      ['01', 1],
      ['12', 12],
    ] as const) {
      const { data } = readTokenData('card', {
        number: NUMBER,
        expiration_month: month,
        expiration_year: 2000,
      });
      expect(data).to.include({ expiration_month: stored, expiration_year: 2000 });
    }
  });

  it('wants three or four digits as cvc', () => {
    for (const cvc of [
      '12',
      '12345',
      'abc',
      '',
      '12 ',
      '1２3',
      12,
      12345,
      1.5,
      -123,
      true,
      ['123'],
      {},
    ]) {
      const errors = errorsOf('card', { number: NUMBER, cvc });
      expect(errors, JSON.stringify(cvc)).to.have.all.keys('data.cvc');
      expect(JSON.stringify(errors)).to.not.match(/12/);
    }
    for (const [cvc, kept] of [
      ['000', '000'],
      ['0123', '0123'],
      [1234, '1234'],
      [100, '100'],
    ] as const) {
      expect(readTokenData('card', { number: NUMBER, cvc }).cvc).to.equal(kept);
    }
  });

  it('names everything that is wrong at once and repeats nothing of it', () => {
    const errors = errorsOf('card', {
      number: '4242424242424241',
      expiration_month: 77,
      expiration_year: 88,
      cvc: '99',
    });
    expect(errors).to.have.all.keys(
      'data.number',
      'data.expiration_month',
      'data.expiration_year',
      'data.cvc',
    );
    expect(JSON.stringify(errors)).to.not.match(/4242|77|88|99/);
  });

  it('wants an object and reads its own members only', () => {
    for (const data of [NUMBER, 1, true, [], [{ number: NUMBER }]]) {
      expect(errorsOf('card', data)).to.have.all.keys('data');
    }
    const inherited = Object.create({ number: NUMBER });
    expect(errorsOf('card', inherited)).to.have.all.keys('data.number');
    expect(errorsOf('card', JSON.parse(`{"__proto__":{"number":"${NUMBER}"}}`))).to.have.all.keys(
      'data.number',
    );
  });
});
