import { expect } from 'chai';
import { evaluate, problemOf } from './evaluate.ts';

const CARD = { number: '3622720627165567', expiration_month: 10, expiration_year: 2028 };
const DASHED = '3622-7206-2716-5567';
const STORE = {
  books: [
    { author: 'Herman Melville', title: 'Moby', price: 8.99 },
    { author: 'J. R. R. Tolkien', title: 'The Lord of the Rings', price: 22.99 },
  ],
  bicycle: { color: 'red', price: 19.95 },
};

/** Expression, data, result: facts 6.4, without the samples that it calls stale. */
const EXAMPLES: [string, unknown, unknown][] = [
  ["data | card_mask: 'false', 'false', 'X', '-'", DASHED, 'XXXX-XXXX-XXXX-XXXX'],
  ["data | card_mask: 'true', 'false', 'X', '-'", DASHED, '3622-7206-XXXX-XXXX'],
  ["data | card_mask: 'true','true','#','-'", DASHED, '3622-7206-####-5567'],
  ["data | card_mask: 'false', 'true', 'X', '-'", DASHED, 'XXXX-XXXX-XXXX-5567'],
  ["data.number | card_mask: 'true', 'true', '#', '-'", CARD, '36227206####5567'],
  ["data.number | card_mask: 'false','true','X','-'", CARD, 'XXXXXXXXXXXX5567'],
  ['data.number | card_mask: true, false', CARD, '36227206XXXXXXXX'],
  ['data.number | card_mask', CARD, 'XXXXXXXXXXXXXXXX'],
  ['data | card_mask: true, true', DASHED, '3622-7206XXXXXX5567'],
  ['data | card_mask: true, true', '378282246310005', '378282XXXXX0005'],
  ["data | card_mask: true, true, 'X', '-'", '3782-822463-10005', '3782-82XXXX-X0005'],
  ['data | card_mask: true, true', '12345678', 'XXXXXXXX'],
  ["data | card_mask: false, false, 'X', '0123456789'", '1234', 'XXXX'],
  ["data | card_bin: '-'", '4242-4242-4242-4242', '42424242'],
  ['data | card_bin', '378282246310005', '378282'],
  ['data | card_bin', '123', '123'],
  ['data.number | last4', CARD, '5567'],
  ['data.number | slice: 12, 2 | last4', CARD, '55'],
  ['data | last4', 'abc', 'abc'],
  ['data | reveal: 6', DASHED, '3622-7XXXXXXXXXXXXX'],
  ['data | reveal: 7, 5', DASHED, '3622-72XXXXXXX-5567'],
  ["data | reveal: 7, 5, '#'", DASHED, '3622-72#######-5567'],
  ["data | reveal: 7, 4, '#', '-'", DASHED, '3622-72##-####-5567'],
  ['data | reveal: 10, 9', DASHED, 'X'.repeat(19)],
  ["data | reveal: 1, 1, 'X', 'b'", 'abc', 'XXX'],
  ["data | reveal: 1, 1, 'b'", 'abc', 'bbb'],
  ['data | reveal', 'abc', 'XXX'],
  ['data | reveal_last: 6', '36227206271667', 'XXXXXXXX271667'],
  ["data | reveal_last: 3, '#'", '36227206271667', '###########667'],
  ['data | reveal_last: 4', '123-45-6789', 'XXX-XX-6789'],
  ['data | reveal_last: 4', '12-3456789', 'XX-XXX6789'],
  ['data | reveal_last: 4', '4242-4242-4242-4242', 'XXXX-XXXX-XXXX-4242'],
  ['data | reveal_last: 4', 'Sensitive Value', 'XXXXXXXXXXXalue'],
  ['data | reveal_last: 4', '123', '123'],
  ['data | reveal_last: 0', '123', 'XXX'],
  ['data | reveal_last: 1000000000', '12345', '12345'],
  ['data | reveal_last: 2', 12345, 'XXX45'],
  ["data | pad_left: 6, '0'", '1234', '001234'],
  ["data | pad_left: 6, 'X'", '1234', 'XX1234'],
  ["data | pad_left: 4, '0'", '1234', '1234'],
  ["data | pad_left: 2, '0'", '1234', '1234'],
  ["data | pad_left: 6, '0'", null, null],
  ["data | pad_right: 6, '0'", '1234', '123400'],
  ["data | pad_right: 6, '\u{1f600}'", '1234', '1234\u{1f600}\u{1f600}'],
  ["data | pad_right: 6, '0'", null, null],
  ["data | json: '$.bicycle.color'", STORE, 'red'],
  ["data | json: '$.bicycle.price'", STORE, 19.95],
  ["data | json: '$.books[0].author'", STORE, 'Herman Melville'],
  ["data | json: '$.books[?(@.price < 10)].title'", STORE, 'Moby'],
  ["data | json: '$.nonexistent'", STORE, null],
  ["data | json: '$.book..author'", STORE, null],
  ["data | json: '$.x'", null, null],
  ['data.books[0].price | stringify', STORE, '8.99'],
  ['data.books[0].title | stringify', STORE, 'Moby'],
  ['data.bicycle | stringify', STORE, '{"color":"red","price":19.95}'],
  ['data | stringify', [{ b: 1, a: [null, true] }], '[{"b":1,"a":[null,true]}]'],
  ['data | stringify', false, 'false'],
  ['data | stringify', { zero: -0 }, '{"zero":-0}'],
  ['data | stringify', null, null],
  ['data | json_stringify', 'say "hi"', '"say \\"hi\\""'],
  ['data | json_stringify', { a: 1 }, '{"a":1}'],
  ['data | json_stringify', null, 'null'],
  ['data | to_boolean', 'True', true],
  ['data | to_boolean', false, false],
  ['data | to_boolean', null, null],
  ['data | to_number', '3.14', 3.14],
  ["'3.14' | to_number", null, 3.14],
  ['data | to_number', '042', 42],
  ['data | to_number', '-1.50', -1.5],
  ['data | to_number', 7, 7],
  ['data | to_number', null, null],
  ['data | to_string', 2.5, '2.5'],
  ['data | to_string', true, 'true'],
  ['data | to_string', 'foo', 'foo'],
  ['data | to_string', null, null],
  ["data | card_exp: 'MM'", CARD, '10'],
  ["data | card_exp: 'YYYY'", CARD, '2028'],
  ["data | card_exp: 'MMYY'", CARD, '1028'],
  ["data | card_exp: 'MM/YY'", CARD, '10/28'],
  ["data | card_exp: 'MM/YYYY'", CARD, '10/2028'],
  ["data | card_exp: 'MM_YYYY'", CARD, '10_2028'],
  ["data | card_exp: 'MM-YYYY'", CARD, '10-2028'],
  ["data | card_exp: 'YYYY-MM'", CARD, '2028-10'],
  ["data | card_exp: 'YYYY/MM'", CARD, '2028/10'],
  ["data | card_exp: 'MMYY'", { expiration_month: 3, expiration_year: 2031 }, '0331'],
  ["data | card_exp: 'MMYY'", { number: '4242424242424242' }, null],
  ["data | card_exp: 'MMYY'", null, null],
  [
    "data | hmac: 'sha-256','secretKeyValue' | to_base16",
    '4242424242424242',
    '90A0050E90515101DCAD0F68955370CCA81F6DCB9D299E7E0585CC9746716D9B',
  ],
  [
    // RFC 2202 section 3, case 2.
    "data | hmac: 'sha-1', 'Jefe' | to_base64",
    'what do ya want for nothing?',
    '7/zfauXrL6LSdBbV8YTfnCWafHk=',
  ],
  ["data.name | split: ' ' | last | upcase", { name: 'John Doe' }, 'DOE'],
];

describe('documented filters', () => {
  for (const [expression, data, result] of EXAMPLES) {
    it(`{{ ${expression} }} of ${JSON.stringify(data).slice(0, 40)}`, () => {
      expect(evaluate(`{{ ${expression} }}`, data)).to.deep.equal(result);
    });
  }

  it('keeps null null where the value is not there', () => {
    const filters = ['reveal_last: 4', 'reveal: 1', 'last4', 'card_mask', 'card_bin', 'alias_card'];
    for (const name of [...filters, 'alias_preserve_format', 'alias_preserve_length']) {
      expect(evaluate(`{{ data | ${name} }}`, null), name).to.equal(null);
    }
  });

  it('masks by character, not by half of one', () => {
    const pair = '\u{1f600}\u{1f601}\u{1f602}';
    expect(evaluate('{{ data | reveal_last: 1 }}', pair)).to.equal('XX\u{1f602}');
    expect(evaluate('{{ data | reveal: 1, 1 }}', pair)).to.equal('\u{1f600}X\u{1f602}');
    expect(evaluate('{{ data | last4 }}', `a${pair}`)).to.equal(`a${pair}`);
  });

  const REFUSED: [string, unknown][] = [
    // Attack 70.
    ['data | nosuchfilter', 'x'],
    ['data | constructor', 'x'],
    ['data | __proto__', 'x'],
    ['data | reveal_last', '12345'],
    ['data | reveal_last: -1', '12345'],
    ['data | reveal_last: 1.5', '12345'],
    ["data | reveal_last: '4'", '12345'],
    ["data | reveal_last: 'abc'", '12345'],
    ['data | reveal_last: nil', '12345'],
    ["data | reveal_last: 4, ''", '12345'],
    ["data | reveal_last: 4, 'XY'", '12345'],
    ["data | reveal_last: 4, 'X', 'Y'", '12345'],
    ['data | reveal_last: data', '12345'],
    ['data | reveal_last: data', { a: 1 }],
    ['data | reveal_last: 4', { number: '1234567890' }],
    ['data | reveal_last: 4', ['1234567890']],
    ['data | reveal: -1', '12345'],
    ['data | card_mask: 1', CARD.number],
    ["data | card_mask: 'yes'", CARD.number],
    ["data | card_mask: true, true, ''", CARD.number],
    ["data | json: '$..price'", STORE],
    ["data | json: '$.books[*]'", STORE],
    ["data | json: '$.books['", STORE],
    ['data | json: data', '$.x'],
    ['data | json', STORE],
    ['data | to_boolean', 'yes'],
    ['data | to_boolean', 1],
    ['data | to_number', 'abc'],
    ['data | to_number', ''],
    ['data | to_number', '0x10'],
    ['data | to_number', '1e999'],
    ['data | to_number', '12345678901234567890'],
    ['data | to_number', true],
    ['data | to_string', { a: 1 }],
    ['data | to_string', [1]],
    ["data | pad_left: 4, ''", 'x'],
    ["data | pad_left: -1, 'x'", 'x'],
    ["data | pad_left: 100000, 'x'", 'x'],
    ["data | pad_right: 9007199254740991, 'x'", 'x'],
    ["data | card_exp: 'DD'", CARD],
    ['data | card_exp', CARD],
    ["data | card_exp: 'MM'", '12'],
    ["data | card_exp: 'MM'", { expiration_month: 13, expiration_year: 2030 }],
    ["data | card_exp: 'MM'", { expiration_month: 1 }],
    ["data | hmac: 'sha-256', 'k'", 'x'],
    ["data | hmac: 'md5', 'k' | to_base16", 'x'],
    ["data | hmac: 'sha-256' | to_base16", 'x'],
    ["data | hmac: 'sha-256', '' | to_base16", 'x'],
    ["data | hmac: 'sha-256', data.none | to_base16", 'x'],
    ["data | hmac: 'sha-256', 'k' | upcase", 'x'],
    ["data | hmac: 'sha-256', 'k' | default: 1", 'x'],
    ["data | hmac: 'sha-256', 'k' | stringify", 'x'],
    ["data | hmac: 'sha-256', 'k' | first | append: 'x' | to_base64", 'x'],
    ["data | hmac: 'sha-256', 'k' | to_base16", { a: 1 }],
    ['data | to_base16', 'x'],
    ['data | to_base64', null],
    ['data | json_stringify | upcase', 'x'],
    ['data | alias_card', '4242x4242'],
    ['data | alias_card: true, true', '1234567890'],
    ['data | alias_preserve_format: 2, 2', 'abcd'],
    ['data | alias_preserve_format', '--- ---'],
    ['data | alias_preserve_length', ''],
    ['data | alias_preserve_length', 'x'.repeat(401)],
  ];
  for (const [expression, data] of REFUSED) {
    it(`refuses {{ ${expression} }} of ${JSON.stringify(data).slice(0, 30)}`, () => {
      problemOf(`{{ ${expression} }}`, data);
    });
  }
});

describe('alias filters', () => {
  const repeat = (expression: string, data: string) =>
    Array.from({ length: 50 }, () => evaluate(`{{ ${expression} }}`, data));

  const SHAPES: [string, string, RegExp][] = [
    ['data | alias_card', '3622720627165567', /^\d{16}$/],
    ["data | alias_card: 'true','true'", '3622720627165567', /^36227206\d{4}5567$/],
    ["data | alias_card: 'true', 'true'", DASHED, /^3622-7206-\d{4}-5567$/],
    ['data | alias_card: false, true', '378282246310005', /^\d{11}0005$/],
    ['data | alias_preserve_format', 'ABC12345DEF67890', /^[a-z]{3}\d{5}[a-z]{3}\d{5}$/],
    ['data | alias_preserve_format: 3, 5', 'ABC12345DEF67890', /^ABC\d{5}[a-z]{3}67890$/],
    ['data | alias_preserve_format', 'Ünsal-42 Ω٣', /^[a-z]{5}-\d\d [a-z]\d$/],
    ['data | alias_preserve_length: 0, 5', 'ABC-2345DEF67890', /^[a-z0-9]{11}67890$/],
  ];
  for (const [expression, data, shape] of SHAPES) {
    it(`{{ ${expression} }} of ${data} has its shape and is random`, () => {
      const aliases = repeat(expression, data);
      for (const alias of aliases) expect(alias).to.match(shape);
      expect(new Set(aliases).size).to.be.greaterThan(1);
    });
  }

  it('is never the value itself', () => {
    for (const alias of repeat('data | alias_preserve_format: 5', '123456')) {
      expect(alias).to.not.equal('123456');
    }
  });
});
