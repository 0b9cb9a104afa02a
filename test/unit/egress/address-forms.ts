/** Addresses that must not be reached, and the many ways to write one down. */
import fc from 'fast-check';
import type { AddressRange, IpAddress } from '../../../shared/egress/ip-address.ts';
import {
  formatIpAddress,
  parseAddressRange,
  rangeContains,
} from '../../../shared/egress/ip-address.ts';

function range(text: string): AddressRange {
  const parsed = parseAddressRange(text);
  if (parsed === undefined) throw new Error('not a range');
  return parsed;
}

/** Every address of a range, its first and last often. */
export function within(text: string): fc.Arbitrary<IpAddress> {
  const { family, bits, prefix } = range(text);
  const size = 1n << BigInt((family === 4 ? 32 : 128) - prefix);
  const offset = fc.oneof(fc.constantFrom(0n, size - 1n), fc.bigInt({ min: 0n, max: size - 1n }));
  return offset.map((one) => ({ family, bits: bits + one }));
}

export const REFUSED_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['255.255.255.255', '168.63.129.16'],
];
export const REFUSED_IPV6 = [
  ...['::/128', '::1', '64:ff9b:1::/48', '100::/64', '2001::/32', '2001:2::/48', '2001:10::/28'],
  ...[
    '2001:20::/28',
    '2001:db8::/32',
    '2002::/16',
    '3fff::/20',
    '4000::/2',
    '5f00::/16',
    'fc00::/7',
  ],
  ...['fe80::/10', 'fec0::/10', 'ff00::/8', '::/96', '::ffff:0:0:0/96'],
];
export const METADATA = [
  ...['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192', '169.254.170.2'],
  ...['168.63.129.16', 'fd20:ce::254', 'fe80::a9fe:a9fe', '169.254.0.23', 'fd00:c1::a9fe:a9fe'],
];

const anyIpv4 = fc.bigInt({ min: 0n, max: 0xffff_ffffn });
export const refusedIpv4 = fc.oneof(...REFUSED_IPV4.map(within));
export const publicIpv4 = anyIpv4
  .map((bits): IpAddress => ({ family: 4, bits }))
  .filter((address) => !REFUSED_IPV4.some((one) => rangeContains(range(one), address)));

/** One number in the forms that the URL parser reads: decimal, hexadecimal, octal, with zeros. */
function numeral(value: bigint): fc.Arbitrary<string> {
  return fc.constantFrom(
    value.toString(),
    `0x${value.toString(16)}`,
    `0X00${value.toString(16).toUpperCase()}`,
    `0${value.toString(8)}`,
    `000${value.toString(8)}`,
  );
}

/** The spellings of an IPv4 address in a URL (WHATWG URL, "IPv4 parser"), in one to four parts. */
export function ipv4Spelling({ bits }: IpAddress): fc.Arbitrary<string> {
  const parts = [bits >> 24n, (bits >> 16n) & 0xffn, (bits >> 8n) & 0xffn];
  return fc
    .record({ count: fc.integer({ min: 0, max: 3 }), dot: fc.constantFrom('.', '。', '．', '｡') })
    .chain(({ count, dot }) => {
      const rest = bits & ((1n << BigInt(32 - 8 * count)) - 1n);
      const numerals = [...parts.slice(0, count), rest].map(numeral);
      return fc.tuple(...numerals).map((texts) => texts.join(dot));
    })
    .chain((text) => fc.constantFrom(text, fullwidth(text), percent(text), `${text}.`));
}

const fullwidth = (text: string): string =>
  text.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));
const percent = (text: string): string => text.replace(/^\d/, (digit) => `%3${digit}`);

const hex = (bits: bigint): string => bits.toString(16);
export const ipv6 = (bits: bigint): string => formatIpAddress({ family: 6, bits });
const high = (bits: bigint): bigint => bits >> 16n;
const low = (bits: bigint): bigint => bits & 0xffffn;

/** Forms that reach the very same IPv4 host. */
export const sameHostForms = (bits: bigint): string[] => {
  const dotted = formatIpAddress({ family: 4, bits });
  const groups = `${hex(high(bits))}:${hex(low(bits))}`;
  return [
    `::ffff:${dotted}`,
    `[::FFFF:${groups}]`,
    `[0:0:0:0:0:ffff:${dotted}]`,
    `64:ff9b::${dotted}`,
    `[64:ff9b::${groups}]`,
    `[0064:ff9b:0:0:0:0:${dotted}]`,
  ];
};

/** Forms of tunnels: they need not reach the host, but must not get past its verdict. */
export const tunnelForms = (bits: bigint): string[] => [
  `[::${formatIpAddress({ family: 4, bits })}]`,
  `[::ffff:0:${hex(high(bits))}:${hex(low(bits))}]`,
  ipv6((0x2002n << 112n) | (bits << 80n) | 1n),
  ipv6((0x2001_0000n << 96n) | (0x0808_0808n << 64n) | (bits ^ 0xffff_ffffn)),
  ipv6((0x2001_0000n << 96n) | (bits << 64n) | 0xf7f7_f7f7n),
  ipv6((0x2a00_1450n << 96n) | (0x5efen << 32n) | bits),
  ipv6((0x2a00_1450n << 96n) | (0x0200_5efen << 32n) | bits),
  `[64:ff9b:1::${hex(high(bits))}:${hex(low(bits))}]`,
  ipv6((0x64_ff9b_0001n << 80n) | (high(bits) << 64n) | (low(bits) << 40n)),
  ipv6((0x64_ff9b_0001n << 80n) | (((bits >> 24n) & 0xffn) << 64n) | ((bits & 0xff_ffffn) << 32n)),
  ipv6((0x64_ff9b_0001n << 80n) | (bits << 24n)),
];
