/**
 * The check of a destination URL when it is saved or first seen: proxies, callbacks, webhooks, fetch.
 * Pure, resolves nothing; the guard judges addresses again when it connects. It must never accept
 * what the URL parser would silently repair into something else.
 */
import { judgeAddress } from './address-rules.ts';
import {
  isLocalhost,
  isPort,
  isRefusedPort,
  judgeName,
  localhostAddresses,
  parseHost,
} from './host-rules.ts';
import type { AddressRange } from './ip-address.ts';

/** Code units of a stored destination (facts 0.2). */
export const DESTINATION_URL_LENGTH_MAX = 400;

/** Why a URL is no destination; complete messages that do not repeat any of it. */
export const DESTINATION_PROBLEMS = {
  length: 'The URL is empty or too long',
  form: 'The URL must be absolute, of the form https://host/path, without spaces or control characters',
  scheme: 'The URL must use https (http only to what SALLYPORT_EGRESS_ALLOW names)',
  userinfo: 'The URL must not contain a user name or password',
  host: 'The URL must name a public host by its DNS name, or one that SALLYPORT_EGRESS_ALLOW names',
  port: 'The port of the URL is not allowed',
} as const;

export type DestinationProblem = keyof typeof DESTINATION_PROBLEMS;

/** Both slashes literally, and an authority right behind them. */
const ABSOLUTE_HTTP_URL = /^https?:\/\/([^/\\?#]+)/i;
const DEFAULT_PORTS: Record<string, number> = { 'https:': 443, 'http:': 80 };

/** How much the host is known to be on the allow list before it is resolved. */
type Standing = 'refused' | 'public' | 'allow_listed';

/**
 * What is wrong with a destination URL; an empty list when it may be stored.
 * A public destination is https, a DNS name, any port but those of other services. Literal addresses,
 * http and all ports are for the ranges in `allow`; names that exist only inside a network are
 * accepted when there are such ranges, and `localhost` when loopback is among them.
 */
export function destinationProblems(
  text: string,
  allow: readonly AddressRange[],
  lengthMax = DESTINATION_URL_LENGTH_MAX,
): DestinationProblem[] {
  if (text.length === 0 || text.length > lengthMax) return ['length'];
  const authority = ABSOLUTE_HTTP_URL.exec(text)?.[1];
  const url = URL.parse(text);
  // The URL parser drops these characters, or trims them.
  if (authority === undefined || url === null || /[\0- \x7f]/.test(text)) return ['form'];
  const standing = standingOf(url.hostname, allow);
  const port = url.port === '' ? DEFAULT_PORTS[url.protocol] : Number(url.port);
  const problems: DestinationProblem[] = [];
  if (authority.includes('@')) problems.push('userinfo');
  if (standing === 'refused') problems.push('host');
  if (standing !== 'allow_listed' && url.protocol !== 'https:') problems.push('scheme');
  if (port === undefined || !isPort(port)) problems.push('port');
  else if (standing !== 'allow_listed' && isRefusedPort(port)) problems.push('port');
  return problems;
}

function standingOf(hostname: string, allow: readonly AddressRange[]): Standing {
  const host = parseHost(hostname);
  if (host === undefined) return 'refused';
  if (host.kind === 'address') {
    return judgeAddress(host.address, allow) === 'allow_listed' ? 'allow_listed' : 'refused';
  }
  const verdict = judgeName(host.name);
  if (verdict !== 'private') return verdict;
  const reachable = isLocalhost(host.name) ? localhostAddresses(allow) : allow;
  return reachable.length > 0 ? 'allow_listed' : 'refused';
}
