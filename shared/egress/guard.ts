/**
 * The one way out (invariant 7): a TCP connection to an address that was judged, proven before the
 * first byte. It must never hand a name to the operating system: between a check and a second
 * resolution the answer can change (DNS rebinding), and literal addresses skip any `lookup`.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { judgeAddress, withoutNat64 } from './address-rules.ts';
import { EgressError } from './egress-error.ts';
import {
  type Host,
  isLocalhost,
  isPort,
  isRefusedPort,
  judgeName,
  localhostAddresses,
  parseHost,
} from './host-rules.ts';
import type { AddressRange, IpAddress } from './ip-address.ts';
import { formatIpAddress, parseIpAddress, sameAddress } from './ip-address.ts';
import type { ResolveName } from './resolve-name.ts';

export interface GuardRules {
  /** SALLYPORT_EGRESS_ALLOW. */
  readonly allow: readonly AddressRange[];
  readonly resolveName: ResolveName;
  /** The addresses of this machine, as text: even public ones are no destination. */
  readonly ownAddresses: () => readonly string[];
}

export interface Target {
  readonly host: Host;
  readonly port: number;
  /** Without TLS only allow-listed addresses are reached. */
  readonly isPlain: boolean;
}

/** Addresses tried per connection; a name may have hundreds that lead nowhere. */
const ATTEMPTS_MAX = 4;
/** One address of several. Three lost SYN packets take longer than a healthy network needs. */
const ATTEMPT_MS_MAX = 3_000;

/** Reads a host as a URL has it, or a socket's options. Throws EgressError. */
export function targetOf(hostname: string, port: number, isPlain: boolean): Target {
  const host = parseHost(hostname);
  if (host === undefined) throw new EgressError('host_refused');
  if (!isPort(port)) throw new EgressError('port_refused');
  return { host, port, isPlain };
}

/**
 * The addresses that a connection may be made to, all judged; at least one. A name is resolved
 * exactly once, and one refused address among its addresses refuses all of them: no honest name leads
 * both out and in. Rejects with EgressError.
 */
export async function checkedAddresses(
  target: Target,
  rules: GuardRules,
  signal: AbortSignal,
): Promise<IpAddress[]> {
  const addresses = await addressesOf(target.host, rules, signal);
  const own = rules.ownAddresses().map(parseIpAddress);
  for (const address of addresses) {
    const verdict = judgeAddress(address, rules.allow);
    if (verdict === 'refused') throw new EgressError('address_refused');
    if (verdict === 'allow_listed') continue;
    const isOwn = own.some((one) => one !== undefined && sameAddress(one, withoutNat64(address)));
    if (isOwn) throw new EgressError('address_refused');
    if (target.isPlain) throw new EgressError('plain_http_refused');
    if (isRefusedPort(target.port)) throw new EgressError('port_refused');
  }
  return addresses;
}

async function addressesOf(
  host: Host,
  rules: GuardRules,
  signal: AbortSignal,
): Promise<IpAddress[]> {
  if (host.kind === 'address') return [host.address];
  if (judgeName(host.name) === 'refused') throw new EgressError('host_refused');
  if (isLocalhost(host.name)) {
    const loopback = localhostAddresses(rules.allow);
    if (loopback.length === 0) throw new EgressError('address_refused');
    return loopback;
  }
  const addresses = (await rules.resolveName(host.name, signal)).map(parseIpAddress);
  if (addresses.length === 0) throw new EgressError('name_not_resolved');
  return addresses.map((address) => {
    if (address === undefined) throw new EgressError('address_refused');
    return address;
  });
}

/**
 * Connects to the first of these addresses that answers, IPv4 and IPv6 in turn, at most four. Nothing
 * has been sent on the socket, and it is at the address that was checked. Rejects with EgressError;
 * then no socket is left.
 */
export async function openSocket(
  addresses: readonly IpAddress[],
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  let failure = new EgressError('connect_failed');
  const attempts = inTurn(addresses).slice(0, ATTEMPTS_MAX);
  for (const [index, address] of attempts.entries()) {
    const isLast = index === attempts.length - 1;
    const patience = isLast ? [signal] : [signal, AbortSignal.timeout(ATTEMPT_MS_MAX)];
    try {
      return await openOne(address, port, AbortSignal.any(patience));
    } catch (error) {
      if (signal.aborted) throw new EgressError('connect_timeout');
      if (error instanceof EgressError) throw error;
      failure = new EgressError('connect_failed', error);
    }
  }
  throw failure;
}

async function openOne(address: IpAddress, port: number, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const socket = connect({ host: formatIpAddress(address), port, autoSelectFamily: false });
  // Until its user listens; without a listener an error would end the process.
  socket.on('error', () => undefined);
  try {
    await once(socket, 'connect', { signal });
    if (!isConnectedTo(socket.remoteAddress, address)) throw new EgressError('address_changed');
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return socket;
}

/** Whether the other end, as the operating system names it, is this address. */
export function isConnectedTo(remoteAddress: string | undefined, checked: IpAddress): boolean {
  const remote = parseIpAddress(remoteAddress ?? '');
  return remote !== undefined && sameAddress(remote, checked);
}

/** IPv4 first, then alternating, so that a machine without one of them soon tries the other. */
function inTurn(addresses: readonly IpAddress[]): IpAddress[] {
  const four = addresses.filter(({ family }) => family === 4);
  const six = addresses.filter(({ family }) => family === 6);
  return Array.from({ length: Math.max(four.length, six.length) }, (_, index) => index).flatMap(
    (index) => [four[index], six[index]].filter((address) => address !== undefined),
  );
}
