/**
 * The checks of card, bank and identity numbers. ASCII digits only: other digits that look alike
 * must never be stored as a number.
 */

/** Card numbers have 13 to 19 digits (facts 5.1). */
const CARD_NUMBER = /^[0-9]{13,19}$/;

const ROUTING_NUMBER = /^[0-9]{9}$/;

/** Passes the checksum, but is no bank. */
const NO_ROUTING_NUMBER = '000000000';

const ZERO = 0x30;

/** 13 to 19 digits with a valid Luhn check digit (ISO/IEC 7812-1 annex B). */
export function isCardNumber(text: string): boolean {
  if (!CARD_NUMBER.test(text)) return false;
  let sum = 0;
  for (let index = 0; index < text.length; index += 1) {
    const digit = text.charCodeAt(text.length - 1 - index) - ZERO;
    const weighted = index % 2 === 0 ? digit : digit * 2;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return sum % 10 === 0;
}

/** Nine digits with the ABA checksum, weights 3, 7, 1 (facts 5.1); all zeros are refused. */
export function isRoutingNumber(text: string): boolean {
  if (!ROUTING_NUMBER.test(text) || text === NO_ROUTING_NUMBER) return false;
  let sum = 0;
  for (let index = 0; index < text.length; index += 1) {
    sum += (text.charCodeAt(index) - ZERO) * ([3, 7, 1][index % 3] ?? 0);
  }
  return sum % 10 === 0;
}
