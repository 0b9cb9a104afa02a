/**
 * How the text of one environment variable becomes a value: one parser per type of variable.
 * A parser answers `undefined` for a bad value; it never throws and never repeats the value.
 */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { isWellFormedApiKey } from '../shared/api-keys.ts';
import { parseKek } from '../shared/crypto/local-key.ts';
import { parseAllowList } from '../shared/egress/address-rules.ts';
import {
  type AddressRange,
  formatAddressRange,
  probableRange,
} from '../shared/egress/ip-address.ts';

export interface VariableType<T> {
  /** Completes "NAME must be …" and the documentation's column of types. */
  readonly expected: string;
  readonly parse: (text: string) => T | undefined;
  /** Of a text that `parse` refuses: what is probably wrong with it, if that can be told without showing a secret. */
  readonly advise?: (text: string) => string | undefined;
  /** The text from which `parse` reads the same value again (settings of a child process). */
  readonly print: (value: T) => string;
}

/** A decimal integer between two bounds, both included. */
export function integer(min: number, max: number, unit = ''): VariableType<number> {
  return {
    expected: `a whole number${unit === '' ? '' : ` of ${unit}`}, ${min} to ${max}`,
    parse: (text) => {
      if (!/^-?[0-9]{1,15}$/.test(text)) return undefined;
      const value = Number(text);
      return value >= min && value <= max ? value : undefined;
    },
    print: String,
  };
}

/** A TCP port; 0 lets the operating system choose one, which tests rely on. */
export const port: VariableType<number> = {
  ...integer(0, 65_535),
  expected: 'a port number, 0 (any free port) to 65535',
};

/** An address to listen on. A name is none: it may stand for several, or for another one tomorrow. */
export const ipAddress: VariableType<string> = {
  expected: 'an IPv4 or IPv6 address',
  parse: (text) => (isIP(text) === 0 ? undefined : text),
  print: (value) => value,
};

/** A path, absolute or relative to the working directory; answered absolute. */
export const path: VariableType<string> = {
  expected: 'a path',
  parse: (text) => (text.includes('\0') ? undefined : resolve(text)),
  print: (value) => value,
};

/** One word of a closed list. */
export function oneOf<const T extends string>(...words: T[]): VariableType<T> {
  return {
    expected: `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
    print: (value) => value,
  };
}

/** `true` or `false`, as it stands. */
export const flag: VariableType<boolean> = {
  expected: 'true or false',
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  print: String,
};

/** A URL of one of the given schemes, e.g. `['redis:', 'rediss:']`. */
export function url(...schemes: string[]): VariableType<string> {
  return {
    expected: `a ${schemes.map((scheme) => `${scheme}//`).join(' or ')} URL`,
    parse: (text) => {
      // `postgres://user:password@/db?host=/socket` has no host, which only URL itself refuses.
      const parsable = URL.canParse(text.replace('@/', '@localhost/'));
      return parsable && schemes.some((scheme) => text.startsWith(`${scheme}//`))
        ? text
        : undefined;
    },
    print: (value) => value,
  };
}

/** A comma list of CIDR ranges or single addresses; an empty text is no range. */
export const addressRanges: VariableType<readonly AddressRange[]> = {
  expected: 'a comma list of CIDR ranges, such as 127.0.0.0/8,fd00::/8',
  parse: (text) => (text === '' ? [] : parseAllowList(text)),
  advise: (text) => {
    const [meant] = text.split(',').flatMap((part) => probableRange(part.trim()) ?? []);
    if (meant === undefined) return undefined;
    return `the bits behind a prefix must be 0, is ${formatAddressRange(meant)} meant?`;
  },
  print: (ranges) => ranges.map(formatAddressRange).join(','),
};

/** 32 bytes in canonical base64 (RFC 4648 section 4). */
export const keyEncryptionKey: VariableType<string> = {
  expected: '32 bytes in base64 (`openssl rand -base64 32` prints such a key)',
  parse: (text) => (parseKek(text) === undefined ? undefined : text),
  print: (value) => value,
};

/** An API key with a right checksum (design section 6). */
export const apiKey: VariableType<string> = {
  expected: 'an API key (`npm run sallyport -- key generate` prints one)',
  parse: (text) => (isWellFormedApiKey(text) ? text : undefined),
  print: (value) => value,
};
