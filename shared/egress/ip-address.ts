/**
 * IP addresses and CIDR ranges as numbers, so that one address has one value however it is spelled.
 * Pure. It must never guess: what is not exactly an address is `undefined`, not "probably a name".
 */

export interface IpAddress {
  readonly family: 4 | 6;
  /** The address as one number of 32 or 128 bits. */
  readonly bits: bigint;
}

export interface AddressRange {
  readonly family: 4 | 6;
  /** The lowest address of the range. */
  readonly bits: bigint;
  /** How many leading bits all addresses of the range share. */
  readonly prefix: number;
}

/** The longest text of an IPv6 address: six groups of four and an IPv4 tail. */
const ADDRESS_LENGTH_MAX = 45;
const GROUPS = 8;

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;
const IPV6_GROUP = /^[0-9a-fA-F]{1,4}$/;

/** ::ffff:0:0/96, an IPv4 address as IPv6 sockets spell it (RFC 4291 section 2.5.5.2). */
const MAPPED_PREFIX = 0xffffn;
const MAPPED_PREFIX_BITS = 96;

/**
 * Reads dotted decimal IPv4 (four parts, no leading zeros) or IPv6 (RFC 4291 section 2.2, all
 * forms, without brackets or zone). An IPv4-mapped IPv6 address is answered as the IPv4 address that
 * it reaches. Other spellings (octal, hexadecimal, short) are for the URL parser to normalise first.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (text.length > ADDRESS_LENGTH_MAX) return undefined;
  if (IPV4.test(text)) return { family: 4, bits: ipv4Bits(text) };
  const bits = ipv6Bits(text);
  if (bits === undefined) return undefined;
  return isMapped(bits) ? { family: 4, bits: low32(bits) } : { family: 6, bits };
}

/** The address as `net.connect` takes it; IPv6 is not compressed. */
export function formatIpAddress({ family, bits }: IpAddress): string {
  if (family === 4) {
    return [24n, 16n, 8n, 0n].map((shift) => Number((bits >> shift) & 0xffn)).join('.');
  }
  const groups = Array.from({ length: GROUPS }, (_, index) => BigInt(16 * (GROUPS - 1 - index)));
  return groups.map((shift) => ((bits >> shift) & 0xffffn).toString(16)).join(':');
}

/**
 * Reads `address/prefix`, or an address alone as the range of only itself. `undefined` when a bit
 * behind the prefix is set: `10.1.2.3/8` is more likely a mistake than the whole of 10.0.0.0/8.
 */
export function parseAddressRange(text: string): AddressRange | undefined {
  const parsed = parseAnyRange(text);
  return parsed !== undefined && bitsBehind(parsed) === 0n ? parsed : undefined;
}

/** The range that a text probably means which is none since bits behind its prefix are set. */
export function probableRange(text: string): AddressRange | undefined {
  const parsed = parseAnyRange(text);
  if (parsed === undefined || bitsBehind(parsed) === 0n) return undefined;
  return { ...parsed, bits: parsed.bits - bitsBehind(parsed) };
}

/** Whatever the bits behind the prefix. */
function parseAnyRange(text: string): AddressRange | undefined {
  const [base = '', given, ...rest] = text.split('/');
  const address = parseIpAddress(base);
  if (address === undefined || rest.length > 0) return undefined;
  const width = widthOf(address.family);
  if (given === undefined) return { ...address, prefix: width };
  if (!/^(?:0|[1-9]\d{0,2})$/.test(given)) return undefined;
  // A range of mapped addresses counts its prefix in 128 bits.
  const mapped = address.family === 4 && base.includes(':');
  const prefix = Number(given) - (mapped ? MAPPED_PREFIX_BITS : 0);
  return prefix < 0 || prefix > width ? undefined : { ...address, prefix };
}

const widthOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

function bitsBehind({ family, bits, prefix }: AddressRange): bigint {
  return bits & ((1n << BigInt(widthOf(family) - prefix)) - 1n);
}

/** The range as `parseAddressRange` reads it again. */
export function formatAddressRange(range: AddressRange): string {
  return `${formatIpAddress(range)}/${range.prefix}`;
}

export function rangeContains(range: AddressRange, address: IpAddress): boolean {
  if (range.family !== address.family) return false;
  const behind = BigInt(widthOf(range.family) - range.prefix);
  return address.bits >> behind === range.bits >> behind;
}

export function sameAddress(one: IpAddress, other: IpAddress): boolean {
  return one.family === other.family && one.bits === other.bits;
}

/** The low 32 bits: where most IPv6 forms keep an IPv4 address. */
export function low32(bits: bigint): bigint {
  return bits & 0xffff_ffffn;
}

function isMapped(bits: bigint): boolean {
  return bits >> 32n === MAPPED_PREFIX;
}

function ipv4Bits(text: string): bigint {
  return text.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

function ipv6Bits(text: string): bigint | undefined {
  const [head = '', tail, ...rest] = text.split('::');
  if (rest.length > 0) return undefined;
  const isCompressed = tail !== undefined;
  const first = groupsOf(head, !isCompressed);
  const last = groupsOf(tail ?? '', true);
  if (first === undefined || last === undefined) return undefined;
  const missing = GROUPS - first.length - last.length;
  if (isCompressed ? missing < 1 : missing !== 0) return undefined;
  const groups = [...first, ...new Array<bigint>(missing).fill(0n), ...last];
  return groups.reduce((bits, group) => (bits << 16n) | group, 0n);
}

/** The 16-bit groups of one side of `::`; only at the end of the address may IPv4 stand for two. */
function groupsOf(text: string, mayEndInIpv4: boolean): bigint[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  const groups: bigint[] = [];
  for (const [index, part] of parts.entries()) {
    if (IPV6_GROUP.test(part)) {
      groups.push(BigInt(`0x${part}`));
    } else if (mayEndInIpv4 && index === parts.length - 1 && IPV4.test(part)) {
      const bits = ipv4Bits(part);
      groups.push(bits >> 16n, bits & 0xffffn);
    } else return undefined;
  }
  return groups;
}
