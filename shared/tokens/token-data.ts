/**
 * Reads the `data` of a token of each type (facts 5.1; spec: Token data validations): validates,
 * coerces, drops members the type does not know, and takes `cvc` out so that nothing that is stored
 * or evaluated later can contain it.
 */
import { type FieldErrors, fieldError, validationError } from '../errors.ts';
import { isCardNumber, isRoutingNumber } from './numbers.ts';
import type { TokenType } from './token-types.ts';

export interface TokenData {
  data: unknown;
  /** Of card data only, to be sealed apart; undefined when the request has none. */
  cvc: string | undefined;
}

/** Facts 2.1: how a value of the wrong JSON type is reported. */
const WRONG_TYPE = 'Deserialization error, invalid input.';

const CARD_NUMBER_RULE = 'A valid card number of 13 to 19 digits without separators is required';
const ROUTING_NUMBER_RULE = 'A valid routing number of nine digits is required';

/** Bank data: account numbers of up to 17 digits, leading zeros kept. */
const BANK_ACCOUNT = /^[0-9]{1,17}$/;
const CVC = /^[0-9]{3,4}$/;
const MONTH_TEXT = /^[0-9]{1,2}$/;
const YEAR_TEXT = /^[0-9]{4}$/;

/** No card of the twentieth century is left; four digits are the upper bound. */
const EXPIRATION_YEAR_MIN = 2000;
const EXPIRATION_YEAR_MAX = 9999;

interface ScalarRule {
  accepts: (text: string) => boolean;
  message: string;
}

function pattern(expression: RegExp): ScalarRule['accepts'] {
  return (text) => expression.test(text);
}

const SCALAR_RULES: Partial<Record<TokenType, ScalarRule>> = {
  card_number: { accepts: isCardNumber, message: CARD_NUMBER_RULE },
  us_bank_account_number: {
    accepts: pattern(/^[0-9]{3,17}$/),
    message: 'An account number of 3 to 17 digits is required',
  },
  us_bank_routing_number: { accepts: isRoutingNumber, message: ROUTING_NUMBER_RULE },
  social_security_number: {
    accepts: pattern(/^[0-9]{3}-?[0-9]{2}-?[0-9]{4}$/),
    message: 'A social security number of nine digits is required, as 000-00-0000 or without "-"',
  },
  employer_id_number: {
    accepts: pattern(/^[0-9]{2}-?[0-9]{7}$/),
    message: 'An employer id number of nine digits is required, as 00-0000000 or without "-"',
  },
};

/**
 * `data` of a create request, or what a patch made of it. Throws a validation error with paths such
 * as `data` and `data.number`. Data of the generic type is returned as it is, falsy values included;
 * null is no data.
 */
export function readTokenData(type: TokenType, data: unknown): TokenData {
  if (data === undefined || data === null) throw fieldError('data', 'Data is required');
  if (type === 'card') return readCard(data);
  if (type === 'bank') return { data: readBank(data), cvc: undefined };
  const rule = SCALAR_RULES[type];
  if (rule !== undefined) {
    if (typeof data !== 'string') throw fieldError('data', WRONG_TYPE);
    if (!rule.accepts(data)) throw fieldError('data', rule.message);
  }
  return { data, cvc: undefined };
}

function readCard(data: unknown): TokenData {
  const source = readMembers(data);
  const errors: FieldErrors = {};
  const number = source.number;
  if (typeof number !== 'string' || !isCardNumber(number)) {
    errors['data.number'] = [isMistyped(number) ? WRONG_TYPE : CARD_NUMBER_RULE];
  }
  const month = readInteger(source.expiration_month, MONTH_TEXT, 1, 12);
  if (month === null) errors['data.expiration_month'] = ['A month from 1 to 12 is required'];
  const year = readInteger(
    source.expiration_year,
    YEAR_TEXT,
    EXPIRATION_YEAR_MIN,
    EXPIRATION_YEAR_MAX,
  );
  if (year === null) {
    errors['data.expiration_year'] = [
      `A year of four digits from ${EXPIRATION_YEAR_MIN} is required`,
    ];
  }
  const cvc = readCvc(source.cvc);
  if (cvc === null) errors['data.cvc'] = ['Three or four digits are required'];
  if (Object.keys(errors).length > 0) throw validationError(errors);
  const card = {
    number,
    ...(typeof month === 'number' ? { expiration_month: month } : {}),
    ...(typeof year === 'number' ? { expiration_year: year } : {}),
  };
  return { data: card, cvc: cvc ?? undefined };
}

function readBank(data: unknown): { routing_number: string; account_number: string } {
  const { routing_number, account_number } = readMembers(data);
  const errors: FieldErrors = {};
  const routingOk = typeof routing_number === 'string' && isRoutingNumber(routing_number);
  if (!routingOk) {
    errors['data.routing_number'] = [isMistyped(routing_number) ? WRONG_TYPE : ROUTING_NUMBER_RULE];
  }
  const accountOk = typeof account_number === 'string' && BANK_ACCOUNT.test(account_number);
  if (!accountOk) {
    const message = 'An account number of 1 to 17 digits is required';
    errors['data.account_number'] = [isMistyped(account_number) ? WRONG_TYPE : message];
  }
  if (!routingOk || !accountOk) throw validationError(errors);
  return { routing_number, account_number };
}

/** The members of object data; own members are all that JSON objects have. */
function readMembers(data: unknown): Record<string, unknown> {
  if (typeof data === 'object' && data !== null && !Array.isArray(data)) return { ...data };
  throw fieldError('data', WRONG_TYPE);
}

/** Present, but not the string it has to be. */
function isMistyped(value: unknown): boolean {
  return value !== undefined && value !== null && typeof value !== 'string';
}

/** A JSON integer or its digits as a string; undefined when absent, null when not acceptable. */
function readInteger(
  value: unknown,
  text: RegExp,
  min: number,
  max: number,
): number | undefined | null {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === 'string' && text.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number)) return null;
  return number >= min && number <= max ? number : null;
}

/** Text or, as clients send it too, a JSON number; undefined when absent, null when refused. */
function readCvc(value: unknown): string | undefined | null {
  if (value === undefined || value === null) return undefined;
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && CVC.test(text) ? text : null;
}
