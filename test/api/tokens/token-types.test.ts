import { expect } from 'chai';
import { expectProblem, type TokenClient } from './token-client.ts';
import { startVault, type Vault } from './vault.ts';

const NUMBER = '4242424242424242';
const BANK = { routing_number: '021000021', account_number: '12345' };

/** `length` digits that begin with 4 and have a valid Luhn check digit. */
function luhnNumber(length: number): string {
  const body = `4${'0'.repeat(length - 2)}`;
  const digits = [...`${body}0`].reverse().map(Number);
  const sum = digits.reduce((total, digit, place) => {
    const weighted = place % 2 === 0 ? digit : digit * 2;
    return total + (weighted > 9 ? weighted - 9 : weighted);
  }, 0);
  return `${body}${(10 - (sum % 10)) % 10}`;
}

describe('POST /tokens: what each type accepts', () => {
  let vault: Vault;
  let tokens: TokenClient;

  before(async () => {
    vault = await startVault();
    tokens = vault.tokens;
  });
  after(() => vault.stop());

  async function stored(type: string, data: unknown): Promise<unknown> {
    const { id } = await tokens.created({ type, data });
    return (await tokens.read(id)).body.data;
  }
  async function refused(type: unknown, data: unknown, ...paths: string[]): Promise<void> {
    expectProblem(await tokens.create({ type, data }), 400, ...paths);
  }

  describe('type', () => {
    const WRONG = ['', 1, null, true, [], {}, 'CARD', 'foo', 'ssn', ' card', 'constructor'];
    for (const type of [...WRONG, '__proto__', 'x'.repeat(10_000)]) {
      it(`refuses ${JSON.stringify(type)?.slice(0, 20)}`, () => refused(type, NUMBER, 'type'));
    }
    it('is required', async () => {
      expectProblem(await tokens.create({ data: NUMBER }), 400, 'type');
    });
    it('is reported together with other members', async () => {
      const answer = await tokens.create({ type: 'foo', containers: 'x', metadata: 1 });
      expectProblem(answer, 400, 'type', 'data', 'containers', 'metadata');
    });
  });

  describe('card numbers', () => {
    const BAD: [string, unknown][] = [
      ['12 digits', luhnNumber(12)],
      ['20 digits', luhnNumber(20)],
      ['spaces', '4242 4242 4242 4242'],
      ['dashes', '4242-4242-4242-4242'],
      ['letters', '424242424242424O'],
      ['Arabic digits', '٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢'],
      ['fullwidth digits', '４２４２４２４２４２４２４２４２'],
      ['a JSON number', 4242424242424242],
      ['a wrong check digit', '4242424242424241'],
      ['white space around', ` ${NUMBER}`],
      ['a line break behind', `${NUMBER}\n`],
      ['no text', ''],
      ['a list', [NUMBER]],
    ];
    for (const [what, number] of BAD) {
      it(`refuses ${what}`, async () => {
        await refused('card_number', number, 'data');
        await refused('card', { number }, 'data.number');
      });
    }
    it('accepts 13 to 19 digits', async () => {
      for (let length = 13; length <= 19; length += 1) {
        const number = luhnNumber(length);
        expect(await stored('card_number', number)).to.equal(number);
        expect(await stored('card', { number })).to.deep.equal({ number });
      }
    });
    it('are required in a card', async () => {
      await refused('card', {}, 'data.number');
      await refused('card', { number: null }, 'data.number');
      await refused('card', { Number: NUMBER }, 'data.number');
    });
    it('are not taken from a prototype', async () => {
      const text = `{"type":"card","data":{"__proto__":{"number":"${NUMBER}"}}}`;
      expectProblem(await tokens.createText(text), 400, 'data.number');
    });
  });

  describe('cards', () => {
    for (const data of ['text', NUMBER, 7, true, [], [{ number: NUMBER }]]) {
      it(`must be objects, not ${JSON.stringify(data)}`, () => refused('card', data, 'data'));
    }
    const ACCEPTED: [string, unknown, number][] = [
      ['expiration_month', '01', 1],
      ['expiration_month', '1', 1],
      ['expiration_month', 12, 12],
      ['expiration_month', 2.0, 2],
      ['expiration_year', '2030', 2030],
      ['expiration_year', 2000, 2000],
      ['expiration_year', 9999, 9999],
    ];
    for (const [member, given, kept] of ACCEPTED) {
      it(`keep ${member} ${JSON.stringify(given)} as ${kept}`, async () => {
        const data = { number: NUMBER, [member]: given };
        expect(await stored('card', data)).to.deep.equal({ number: NUMBER, [member]: kept });
      });
    }
    const REFUSED: [string, unknown[]][] = [
      [
        'expiration_month',
        [0, 13, -1, 1.5, '00', '13', '001', 'x', '', ' 1', true, [1], {}, 1e300],
      ],
      ['expiration_year', [1999, 26, 99999, 2030.5, '26', '02030', '', 'year', false, [2030]]],
      [
        'cvc',
        ['12', '12345', 'abc', '', '12 ', ' 123', '１２３', 12, 12345, 1.5, -123, true, [123]],
      ],
    ];
    for (const [member, values] of REFUSED) {
      for (const value of values) {
        it(`refuse ${member} ${JSON.stringify(value)}`, () =>
          refused('card', { number: NUMBER, [member]: value }, `data.${member}`));
      }
    }
    it('report every member that is wrong', () =>
      refused(
        'card',
        { expiration_month: 13, expiration_year: 1, cvc: 'x' },
        ...['data.number', 'data.expiration_month', 'data.expiration_year', 'data.cvc'],
      ));
    it('take null for a member that is not there', async () => {
      const data = { number: NUMBER, expiration_month: null, expiration_year: null, cvc: null };
      expect(await stored('card', data)).to.deep.equal({ number: NUMBER });
    });
    it('show no expiry that they do not have, masked or in clear', async () => {
      const made = await tokens.created({ type: 'card', data: { number: NUMBER } });
      expect(made.data).to.deep.equal({ number: 'XXXXXXXXXXXX4242' });
      expect(made.mask).to.have.all.keys('number', 'expiration_month', 'expiration_year');
      const masked = await vault.clientWith({ permissions: ['token:read'] });
      expect((await masked.read(made.id)).body.data).to.deep.equal(made.data);
      expect((await tokens.read(made.id)).body.data).to.deep.equal({ number: NUMBER });
      const patched = await tokens.patch(made.id, { data: { expiration_month: 7 } });
      expect(patched.body.data).to.deep.equal({ ...(made.data as object), expiration_month: 7 });
    });
    it('drop members that cards do not have', async () => {
      const data = { number: NUMBER, holder: 'Ann', constructor: 1, CVC: '123', pin: '0000' };
      expect(await stored('card', data)).to.deep.equal({ number: NUMBER });
    });
    it('of the past are accepted', async () => {
      const data = { number: NUMBER, expiration_month: 1, expiration_year: 2001 };
      expect(await stored('card', data)).to.deep.equal(data);
    });
    for (const [given, kept] of [
      ['000', '000'],
      ['0123', '0123'],
      [123, '123'],
      [1234, '1234'],
    ]) {
      it(`keep cvc ${JSON.stringify(given)} as ${JSON.stringify(kept)}`, async () => {
        expect(await stored('card', { number: NUMBER, cvc: given })).to.deep.equal({
          number: NUMBER,
          cvc: kept,
        });
      });
    }
  });

  describe('bank data', () => {
    const ROUTING = [
      '02100002',
      '0210000210',
      '021000022',
      '000000000',
      '02100002a',
      '٠٢١٠٠٠٠٢١',
      ' 021000021',
      21000021,
      null,
      '',
    ];
    for (const routing of ROUTING) {
      it(`refuses routing number ${JSON.stringify(routing)}`, async () => {
        await refused('bank', { ...BANK, routing_number: routing }, 'data.routing_number');
        await refused('us_bank_routing_number', routing, 'data');
      });
    }
    for (const account of [
      '1'.repeat(18),
      '',
      '12 34',
      '12-34',
      '12a',
      12345,
      null,
      '１２３４５',
    ]) {
      it(`refuses account number ${JSON.stringify(account)}`, async () => {
        await refused('bank', { ...BANK, account_number: account }, 'data.account_number');
        await refused('us_bank_account_number', account, 'data');
      });
    }
    it('keeps leading zeros of account numbers of up to 17 digits', async () => {
      for (const account_number of ['00001', '0'.repeat(17), '9'.repeat(17)]) {
        expect(await stored('us_bank_account_number', account_number)).to.equal(account_number);
        const data = { ...BANK, account_number };
        expect(await stored('bank', data)).to.deep.equal(data);
      }
    });
    it('wants at least three digits of a bare account number', async () => {
      await refused('us_bank_account_number', '12', 'data');
      expect(await stored('us_bank_account_number', '123')).to.equal('123');
    });
    it('drops members it does not have', async () => {
      expect(await stored('bank', { ...BANK, name: 'Ann', cvc: '123' })).to.deep.equal(BANK);
    });
  });

  describe('identity numbers', () => {
    const ACCEPTED: [string, string[]][] = [
      ['social_security_number', ['123-45-6789', '123456789']],
      ['employer_id_number', ['12-3456789', '123456789']],
    ];
    for (const [type, numbers] of ACCEPTED) {
      it(`of type ${type} are kept as they are written`, async () => {
        for (const number of numbers) expect(await stored(type, number)).to.equal(number);
      });
      it(`of type ${type} have one fingerprint with and without dashes`, async () => {
        const prints = await Promise.all(
          numbers.map(async (data) => (await tokens.created({ type, data })).fingerprint),
        );
        expect(prints[0]).to.equal(prints[1]);
      });
      for (const bad of ['12345678', '1234567890', '12345678x', '1-23456789', '', 123456789, {}]) {
        it(`of type ${type} are not ${JSON.stringify(bad)}`, () => refused(type, bad, 'data'));
      }
    }
  });

  it('stores a cvc inside of generic data as any other member', async () => {
    const data = { cvc: '123', card: { number: NUMBER, cvc: '321' } };
    expect(await stored('token', data)).to.deep.equal(data);
    const later = await vault.later(7_200);
    const { id } = await tokens.created({ type: 'token', data });
    expect((await later.read(id)).body.data).to.deep.equal(data);
  });
});
