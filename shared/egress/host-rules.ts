/**
 * What the host and port of a destination say before any name is resolved. Pure. It must read a host
 * exactly as the URL parser does, since that is what the connection is made to.
 */

import { judgeAddress } from './address-rules.ts';
import type { AddressRange, IpAddress } from './ip-address.ts';
import { parseIpAddress } from './ip-address.ts';

export type Host =
  | { readonly kind: 'address'; readonly address: IpAddress }
  | { readonly kind: 'name'; readonly name: string };

/**
 * `public`: the name may lead anywhere. `private`: it can only lead into the operator's own network
 * or machine. `refused`: no destination, whatever is allow-listed.
 */
export type NameVerdict = 'public' | 'private' | 'refused';

/** RFC 1035 section 2.3.4. */
const NAME_LENGTH_MAX = 253;
const NAME =
  /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

const LOOPBACK: readonly IpAddress[] = [
  { family: 4, bits: 0x7f00_0001n },
  { family: 6, bits: 1n },
];

/** Names of metadata services and of what is below them. */
const METADATA_NAMES = [
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  'metadata.packet.net',
  'instance-data',
  'instance-data.ec2.internal',
];

/** Last labels that no public registry delegates (RFC 6761, 6762, 8375, and customs). */
const PRIVATE_SUFFIXES = [
  'localhost',
  'local',
  'localdomain',
  'internal',
  'home.arpa',
  'lan',
  'intranet',
  'corp',
  'private',
  'svc',
];

/**
 * Ports of services that are no web servers and would act on lines of an HTTP request (the "bad
 * ports" of the Fetch standard), and of databases and machine control that commonly have no password.
 */
const REFUSED_PORTS = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95],
  ...[101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179],
  ...[389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587],
  ...[601, 636, 873, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379],
  ...[2380, 3306, 3389, 3659, 4045, 4190, 4369, 5060, 5061, 5432, 5433, 5672, 5900, 5984, 6000],
  ...[6379, 6380, 6432, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042, 9092, 9100],
  ...[10080, 10250, 11211, 27017, 27018],
]);

/**
 * Reads the host of a URL or the `host` of a socket: any spelling that the URL parser takes for an
 * address is that address (`0x7f.1`, `①②⑦.0.0.1`, `[::1]`, and `::1` without brackets).
 * `undefined` when it is neither an address nor a host name, e.g. with a zone or a port.
 */
export function parseHost(text: string): Host | undefined {
  // Characters that would end the host, or that the URL parser would drop.
  if (/[\s/\\?#@\0]/.test(text)) return undefined;
  const bracketed = text.includes(':') && !text.startsWith('[') ? `[${text}]` : text;
  // A port behind the brackets is not a part of the host.
  if (bracketed.startsWith('[') && !bracketed.endsWith(']')) return undefined;
  const hostname = URL.parse(`https://${bracketed}/`)?.hostname;
  if (hostname === undefined) return undefined;
  const address = parseIpAddress(hostname.replace(/^\[|\]$/g, ''));
  return address === undefined ? { kind: 'name', name: hostname } : { kind: 'address', address };
}

/**
 * The verdict on a name as the URL parser gives it (lower case, punycode). A dot at the end is
 * refused: certificates and allow lists do not have it.
 */
export function judgeName(name: string): NameVerdict {
  if (name.length > NAME_LENGTH_MAX || !NAME.test(name)) return 'refused';
  if (METADATA_NAMES.some((one) => isOrBelow(name, one))) return 'refused';
  if (!name.includes('.')) return 'private';
  return PRIVATE_SUFFIXES.some((suffix) => isOrBelow(name, suffix)) ? 'private' : 'public';
}

/** RFC 6761 section 6.3: such names are loopback and are never asked of a server. */
export function isLocalhost(name: string): boolean {
  return isOrBelow(name, 'localhost');
}

/** What localhost leads to: those loopback addresses that are allow-listed, or none. */
export function localhostAddresses(allow: readonly AddressRange[]): IpAddress[] {
  return LOOPBACK.filter((address) => judgeAddress(address, allow) === 'allow_listed');
}

/** Whether a port is refused unless the destination is allow-listed. */
export function isRefusedPort(port: number): boolean {
  return REFUSED_PORTS.has(port);
}

/** 1 to 65535; port 0 is no destination even for who is allow-listed. */
export function isPort(port: number): boolean {
  return Number.isInteger(port) && port > 0 && port <= 65_535;
}

function isOrBelow(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}
