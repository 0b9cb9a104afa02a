/**
 * Every outgoing connection of Sallyport starts here: proxies, callbacks, webhooks and the `fetch` of
 * scripts. Nothing made here follows redirects, reads proxy variables of the environment or speaks
 * anything but HTTP/1.1.
 */
import { networkInterfaces } from 'node:os';
import { Agent, type buildConnector } from 'undici';
import { type Connect, createConnect } from './connect.ts';
import type { EgressError } from './egress-error.ts';
import { createGuardedAgents, type GuardedAgents } from './guarded-agents.ts';
import type { AddressRange } from './ip-address.ts';
import type { OnRefused } from './refusal-log.ts';
import { createResolveName, type ResolveName } from './resolve-name.ts';
import { createTrust, type TlsMaterial } from './trusted-tls.ts';

export interface EgressSettings {
  /** SALLYPORT_EGRESS_ALLOW. */
  readonly allow: readonly AddressRange[];
  /** The certificates of SALLYPORT_EGRESS_CA_FILE. */
  readonly extraCa?: readonly string[];
  readonly onRefused: OnRefused;
  readonly resolveName?: ResolveName;
  /** Default: the addresses of all network interfaces. */
  readonly ownAddresses?: () => readonly string[];
}

/** All optional; the defaults below say why. */
export interface EgressLimits {
  /** Name, TCP and TLS together. */
  readonly connectTimeoutMs?: number;
  /** From the end of the request to the end of the answer's head. */
  readonly headersTimeoutMs?: number;
  /** Between two pieces of the answer's body; the caller's own deadline bounds the whole. */
  readonly bodyTimeoutMs?: number;
  /** Connections per origin. */
  readonly connectionsMax?: number;
  /** Origins with open connections; one more fails. */
  readonly originsMax?: number;
  /** Bytes of the answer's head. */
  readonly headerBytesMax?: number;
  /** Bytes of the answer's body, as sent (compressed); by default not limited, for streams. */
  readonly responseBytesMax?: number;
  /** How long an idle connection is kept, whatever the destination announces. */
  readonly keepAliveMs?: number;
}

export interface EgressOptions extends EgressLimits {
  /** Whose connections they are, for `onRefused`. */
  readonly tenant_id?: string;
}

type Limits = Required<Omit<EgressLimits, 'responseBytesMax'>> & EgressLimits;

/** Connections per origin: enough for one worker at full load on one destination. */
export const CONNECTIONS_MAX = 64;

const DEFAULTS = {
  // Resolving may take half of it.
  connectTimeoutMs: 10_000,
  // A destination has 25 s (facts 10.1); also the only bound where it takes nothing of a body that streams.
  headersTimeoutMs: 25_000,
  bodyTimeoutMs: 25_000,
  connectionsMax: CONNECTIONS_MAX,
  originsMax: 1_000,
  // As Node's own parser.
  headerBytesMax: 16_384,
  // Shorter than any load balancer's idle limit, so that we close first.
  keepAliveMs: 4_000,
} satisfies EgressLimits;

export interface Egress {
  readonly connect: Connect;
  /** An undici dispatcher with pools of its own; close it when it is not needed any more. */
  dispatcher(options?: EgressOptions, tls?: TlsMaterial): Agent;
  /** The same for `node:http` requests. Here the limits of answers are the caller's. */
  agents(options?: EgressOptions, tls?: TlsMaterial): GuardedAgents;
}

/** Opens nothing by itself. Throws when a certificate or key is no PEM. */
export function createEgress({
  allow,
  extraCa = [],
  onRefused,
  resolveName = createResolveName(),
  ownAddresses = machineAddresses,
}: EgressSettings): Egress {
  const rules = { allow, resolveName, ownAddresses };
  const withoutClientKey = createTrust({ extraCa });

  function connectWith(
    { connectTimeoutMs: timeoutMs, tenant_id }: Limits & EgressOptions,
    tls: TlsMaterial | undefined,
  ): Connect {
    const trust =
      tls === undefined
        ? withoutClientKey
        : createTrust({ ...tls, extraCa: [...extraCa, ...(tls.extraCa ?? [])] });
    const refuse = (error: EgressError): void => onRefused(error, tenant_id);
    return createConnect({ rules, trust, timeoutMs, onRefused: refuse });
  }

  return {
    connect: connectWith(DEFAULTS, undefined),
    dispatcher: (options, tls) => {
      const all = { ...DEFAULTS, ...options };
      return createDispatcher(connectWith(all, tls), all);
    },
    agents: (options, tls) => {
      const all = { ...DEFAULTS, ...options };
      return createGuardedAgents(connectWith(all, tls), {
        keepAlive: true,
        maxSockets: all.connectionsMax,
        timeout: all.keepAliveMs,
      });
    },
  };
}

function createDispatcher(connect: Connect, limits: Limits): Agent {
  return new Agent({
    connect: undiciConnector(connect),
    allowH2: false,
    pipelining: 1,
    connections: limits.connectionsMax,
    maxOrigins: limits.originsMax,
    headersTimeout: limits.headersTimeoutMs,
    bodyTimeout: limits.bodyTimeoutMs,
    maxHeaderSize: limits.headerBytesMax,
    maxResponseSize: limits.responseBytesMax ?? -1,
    keepAliveTimeout: limits.keepAliveMs,
    keepAliveMaxTimeout: limits.keepAliveMs,
  });
}

/** undici's `servername` comes from the Host header of a request, so it is not read. */
function undiciConnector(connect: Connect): buildConnector.connector {
  return ({ hostname, protocol, port }, callback) => {
    const isPlain = protocol !== 'https:';
    const defaultPort = isPlain ? 80 : 443;
    connect(hostname, port === '' ? defaultPort : Number(port), isPlain).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

function machineAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map((one) => one.address));
}
