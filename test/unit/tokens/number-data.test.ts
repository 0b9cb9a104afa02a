import { expect } from 'chai';
import { readTokenData } from '../../../shared/tokens/token-data.ts';
import type { TokenType } from '../../../shared/tokens/token-types.ts';
import { errorsOf } from './data-errors.ts';

const ROUTING = '021000021';

describe('readTokenData: bank', () => {
  const bank = { routing_number: ROUTING, account_number: '00001' };

  it('keeps leading zeros and drops what it does not know', () => {
    const read = readTokenData('bank', { ...bank, cvc: '123', bank_name: 'B' });
    expect(read).to.deep.equal({ data: bank, cvc: undefined });
  });

  for (const routing_number of [
    '02100002',
    '0210000210',
    '021000022',
    '000000000',
    '02100002a',
    21000021,
    null,
    '',
  ]) {
    it(`refuses the routing number ${JSON.stringify(routing_number)}`, () => {
      expect(errorsOf('bank', { ...bank, routing_number })).to.have.all.keys('data.routing_number');
    });
  }

  for (const account_number of ['1'.repeat(18), '', '1 2', '12-3', 'a', '１', 1, null, undefined]) {
    it(`refuses the account number ${JSON.stringify(account_number)}`, () => {
      expect(errorsOf('bank', { ...bank, account_number })).to.have.all.keys('data.account_number');
    });
  }

  it('accepts up to 17 digits', () => {
    for (const account_number of ['1', '1'.repeat(17), '0'.repeat(17)]) {
      expect(readTokenData('bank', { ...bank, account_number }).data).to.include({
        account_number,
      });
    }
  });

  it('names both members', () => {
    expect(errorsOf('bank', {})).to.have.all.keys('data.routing_number', 'data.account_number');
    expect(errorsOf('bank', 'x')).to.have.all.keys('data');
  });
});

describe('readTokenData: single values', () => {
  const cases: [TokenType, string[], unknown[]][] = [
    [
      'card_number',
      ['4242424242424242', '378282246310005'],
      ['4242424242424241', '4242-4242-4242-4242', 4242424242424242, {}],
    ],
    ['us_bank_account_number', ['000', '1'.repeat(17)], ['12', '1'.repeat(18), '12a', '1 23', 123]],
    [
      'us_bank_routing_number',
      [ROUTING, '110000000'],
      ['000000000', '021000022', '02100002', 21000021],
    ],
    [
      'social_security_number',
      ['123456789', '123-45-6789', '000000000'],
      [
        '12345678',
        '1234567890',
        '123-456-789',
        '12-3456789',
        '123 45 6789',
        '123-45-678a',
        123456789,
      ],
    ],
    [
      'employer_id_number',
      ['123456789', '12-3456789'],
      ['12345678', '123-45-6789', '1-23456789', ''],
    ],
  ];
  for (const [type, good, bad] of cases) {
    it(`accepts and refuses ${type}`, () => {
      for (const data of good) {
        expect(readTokenData(type, data)).to.deep.equal({ data, cvc: undefined });
      }
      for (const data of [...bad, `${good[0]}\n`, [good[0]]]) {
        expect(errorsOf(type, data), JSON.stringify(data)).to.have.all.keys('data');
      }
    });
  }
});
