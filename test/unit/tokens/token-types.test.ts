import { expect } from 'chai';
import { normaliseContainer } from '../../../shared/access/containers.ts';
import {
  isTokenType,
  protectedNumbers,
  TOKEN_TYPES,
  tokenTypeDefaults,
} from '../../../shared/tokens/token-types.ts';

describe('token types', () => {
  it('are the eight of the API, by exact name', () => {
    expect(Object.keys(TOKEN_TYPES)).to.deep.equal([
      'token',
      'card',
      'bank',
      'card_number',
      'us_bank_account_number',
      'us_bank_routing_number',
      'social_security_number',
      'employer_id_number',
    ]);
    for (const name of [
      '',
      'CARD',
      'card ',
      'ssn',
      'foo',
      'constructor',
      '__proto__',
      1,
      null,
      'x'.repeat(10_000),
    ]) {
      expect(isTokenType(name), String(name).slice(0, 20)).to.equal(false);
    }
    expect(isTokenType('card')).to.equal(true);
  });

  it('have the documented defaults', () => {
    expect(tokenTypeDefaults('token')).to.deep.equal({
      container: '/general/high/',
      mask: null,
      fingerprint_expression: '{{ data | stringify }}',
      search_indexes: [],
    });
    expect(tokenTypeDefaults('bank')).to.deep.equal({
      container: '/bank/high/',
      mask: {
        routing_number: '{{ data.routing_number }}',
        account_number: '{{ data.account_number | reveal_last: 4 }}',
      },
      fingerprint_expression: '{{ data.account_number }}|{{ data.routing_number }}',
      search_indexes: [],
    });
    expect(tokenTypeDefaults('social_security_number').search_indexes).to.deep.equal([
      '{{ data }}',
      "{{ data | remove: '-' }}",
      '{{ data | last4 }}',
    ]);
  });

  it('have containers in normal form and never a default that names cvc', () => {
    for (const defaults of Object.values(TOKEN_TYPES)) {
      expect(normaliseContainer(defaults.container)).to.equal(defaults.container);
      expect(JSON.stringify(defaults)).to.not.include('cvc');
    }
  });
});

describe('protectedNumbers', () => {
  it('are the card or the account number', () => {
    expect(
      protectedNumbers('card', { number: '4242424242424242', expiration_year: 2030 }),
    ).to.deep.equal(['4242424242424242']);
    expect(
      protectedNumbers('bank', { routing_number: '021000021', account_number: '00001' }),
    ).to.deep.equal(['00001']);
    expect(protectedNumbers('card_number', '4242424242424242')).to.deep.equal(['4242424242424242']);
    expect(protectedNumbers('us_bank_account_number', '12345')).to.deep.equal(['12345']);
  });

  it('are none for the other types, whatever their data looks like', () => {
    for (const type of ['token', 'us_bank_routing_number', 'social_security_number'] as const) {
      expect(protectedNumbers(type, { number: '4242424242424242' })).to.deep.equal([]);
      expect(protectedNumbers(type, '021000021')).to.deep.equal([]);
    }
  });
});
