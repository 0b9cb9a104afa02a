/**
 * Which IP addresses outgoing connections may reach. Pure. It must never answer more mildly for one
 * spelling of a destination than for another, and no list of the operator opens the metadata services
 * of clouds: they hand out credentials of the machine to whoever asks.
 */
import type { AddressRange, IpAddress } from './ip-address.ts';
import { low32, parseAddressRange, rangeContains } from './ip-address.ts';

/**
 * `public`: reachable for everybody. `allow_listed`: in a range of SALLYPORT_EGRESS_ALLOW, so plain
 * http and every port are fine too. `refused`: neither.
 */
export type AddressVerdict = 'public' | 'allow_listed' | 'refused';

/** Ranges in SALLYPORT_EGRESS_ALLOW: more belong into a network, and each is tried per connection. */
export const ALLOW_RANGES_MAX = 100;

/** "This host", refused whatever the operator lists: connecting to it reaches loopback unseen. */
const UNSPECIFIED = ranges('0.0.0.0/8', '::');

/**
 * Where clouds keep metadata, credentials and agents of the machine: refused whatever the operator
 * lists. Link-local as a whole, since each cloud has more of them there (169.254.170.2, 169.254.0.23,
 * …) and no destination that has a name is link-local.
 */
const METADATA = ranges(
  '169.254.0.0/16',
  '100.100.100.200', // Alibaba
  '168.63.129.16', // Azure, in public space
  '192.0.0.192', // Oracle
  'fe80::/10',
  'fd00:ec2::/32', // AWS: metadata, pod identity, time, DNS
  'fd20:ce::254', // Google
  'fd00:c1::a9fe:a9fe', // Oracle
);

/** IANA IPv4 Special-Purpose Address Registry (RFC 6890), and the multicast and reserved classes. */
const NOT_PUBLIC_IPV4 = ranges(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10', // shared by carrier-grade NAT
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24', // documentation, like 198.51.100.0/24 and 203.0.113.0/24
  '192.88.99.0/24', // 6to4 relays, deprecated
  '192.168.0.0/16',
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, with the broadcast address
);

/** Only here are global unicast addresses assigned; unique, site and link local lie outside. */
const GLOBAL_UNICAST = range('2000::/3');

/** IANA IPv6 Special-Purpose Address Registry, as far as it lies within global unicast. */
const NOT_PUBLIC_IPV6 = ranges(
  '2001::/23', // Teredo, benchmarking, ORCHID and other protocol assignments
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation (RFC 9637)
);

/** NAT64 (RFC 6052): how a machine with IPv6 only reaches any IPv4 address. */
const NAT64 = range('64:ff9b::/96');

/** 32 bits of an IPv6 address, counted from its right end. */
const bitsAt = (bits: bigint, shift: bigint): bigint => low32(bits >> shift);
const ISATAP_ID = 0x5efen;
/** RFC 5214 section 6.1: the universal/local bit of the identifier may be set or not. */
const ISATAP_MASK = 0xfdff_ffffn;

/** Other forms in which an IPv6 address carries IPv4, and where. */
const EMBEDDED: readonly {
  readonly holds: (address: IpAddress) => boolean;
  readonly read: (bits: bigint) => readonly bigint[];
}[] = [
  // IPv4-compatible (RFC 4291 section 2.5.5.1) and IPv4-translated (RFC 2765 section 2.1)
  { holds: within('::/96'), read: (bits) => [low32(bits)] },
  { holds: within('::ffff:0:0:0/96'), read: (bits) => [low32(bits)] },
  { holds: within('2002::/16'), read: (bits) => [bitsAt(bits, 80n)] }, // 6to4 (RFC 3056)
  // Teredo (RFC 4380 section 4): the server, and the client with all bits inverted
  { holds: within('2001::/32'), read: (bits) => [bitsAt(bits, 64n), low32(~bits)] },
  { holds: within('64:ff9b:1::/48'), read: localNat64 },
  {
    holds: ({ bits }) => (bitsAt(bits, 32n) & ISATAP_MASK) === ISATAP_ID,
    read: (bits) => [low32(bits)],
  },
];

/** NAT64 for local use (RFC 8215) with a prefix of 48, 56, 64 or 96 bits (RFC 6052 section 2.2). */
function localNat64(bits: bigint): bigint[] {
  const prefix48 = (((bits >> 64n) & 0xffffn) << 16n) | ((bits >> 40n) & 0xffffn);
  const prefix56 = (((bits >> 64n) & 0xffn) << 24n) | ((bits >> 32n) & 0xff_ffffn);
  return [prefix48, prefix56, bitsAt(bits, 24n), low32(bits)];
}

/**
 * The verdict on one address, given the operator's ranges. NAT64 and IPv4-mapped addresses share the
 * verdict of their IPv4 address; tunnels (6to4, Teredo, IPv4-compatible, local NAT64) are public for
 * nobody, and an address that carries an IPv4 address is never judged more mildly than that.
 */
export function judgeAddress(address: IpAddress, allow: readonly AddressRange[]): AddressVerdict {
  const destination = withoutNat64(address);
  const embedded = embeddedIpv4(destination);
  if (isIn(UNSPECIFIED, destination)) return 'refused';
  if ([destination, ...embedded].some((one) => isIn(METADATA, one))) return 'refused';
  if (isIn(allow, destination)) return 'allow_listed';
  return [destination, ...embedded].every(isPublic) ? 'public' : 'refused';
}

/** The IPv4 address that a NAT64 address leads to; any other address as it is. */
export function withoutNat64(address: IpAddress): IpAddress {
  return rangeContains(NAT64, address) ? { family: 4, bits: low32(address.bits) } : address;
}

/**
 * Reads a comma list of CIDR ranges or single addresses (blanks around each are dropped).
 * `undefined` when one is malformed, has bits behind its prefix, or there are too many.
 */
export function parseAllowList(text: string): readonly AddressRange[] | undefined {
  const listed = text.split(',').map((part) => parseAddressRange(part.trim()));
  if (listed.length > ALLOW_RANGES_MAX) return undefined;
  return listed.every((one) => one !== undefined) ? listed : undefined;
}

function isPublic(address: IpAddress): boolean {
  if (address.family === 4) return !isIn(NOT_PUBLIC_IPV4, address);
  return rangeContains(GLOBAL_UNICAST, address) && !isIn(NOT_PUBLIC_IPV6, address);
}

function embeddedIpv4(address: IpAddress): IpAddress[] {
  if (address.family === 4) return [];
  const found = EMBEDDED.filter(({ holds }) => holds(address));
  return found.flatMap(({ read }) => read(address.bits)).map((bits) => ({ family: 4, bits }));
}

function isIn(list: readonly AddressRange[], address: IpAddress): boolean {
  return list.some((one) => rangeContains(one, address));
}

function within(text: string): (address: IpAddress) => boolean {
  const one = range(text);
  return (address) => rangeContains(one, address);
}

function ranges(...texts: string[]): AddressRange[] {
  return texts.map(range);
}

function range(text: string): AddressRange {
  const parsed = parseAddressRange(text);
  if (parsed === undefined) throw new Error(`${text} is not a range`);
  return parsed;
}
