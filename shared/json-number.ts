/**
 * Decides whether a JSON number literal survives the trip through a double without a change of its
 * decimal value. It must never let a silently rounded number into the vault.
 */

/**
 * A literal of this length without exponent has at most 15 significant digits, and every such
 * decimal is the shortest print of its own double (DBL_DIG of IEEE 754 binary64): no need to ask.
 */
export const ALWAYS_EXACT_LENGTH = 15;

const ZERO = 0x30;

/** One past the last character that is not `0`, from the right. */
function endWithoutZeros(digits: string): number {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === ZERO) end -= 1;
  return end;
}

function startWithoutZeros(digits: string, end: number): number {
  let start = 0;
  while (start < end && digits.charCodeAt(start) === ZERO) start += 1;
  return start;
}

/**
 * The magnitude of a literal in one spelling: significant digits, `e`, power of ten. `1.0`, `1`
 * and `0.1E1` are all `1e0`; every zero is `0`. Linear in the length of the literal.
 */
function normalMagnitude(literal: string): string {
  const marker = literal.search(/[eE]/);
  const exponent = marker < 0 ? 0 : Number(literal.slice(marker + 1));
  const mantissa = literal.slice(literal.startsWith('-') ? 1 : 0, marker < 0 ? undefined : marker);
  const point = mantissa.indexOf('.');
  const fraction = point < 0 ? '' : mantissa.slice(point + 1);
  const digits = point < 0 ? mantissa : mantissa.slice(0, point) + fraction;
  const end = endWithoutZeros(digits);
  const start = startWithoutZeros(digits, end);
  if (start === end) return '0';
  return `${digits.slice(start, end)}e${exponent - fraction.length + (digits.length - end)}`;
}

/**
 * `literal` is a number of the JSON grammar (RFC 8259 section 6). False when the parsed double would
 * print another decimal value, overflows, or vanishes to zero: `1e400`, `1e-400`,
 * `12345678901234567890`. True for other spellings of the same value: `1.0`, `1E2`, `-0`.
 */
export function isExactNumber(literal: string): boolean {
  const value = Number(literal);
  if (!Number.isFinite(value)) return false;
  return normalMagnitude(literal) === normalMagnitude(String(value));
}
