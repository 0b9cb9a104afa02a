/**
 * Resolves a host name over DNS within limits. It must never use `dns.lookup`: that blocks a thread
 * of the process for as long as a silent server likes, and a few such names would stop everything.
 * The hosts file is not read; localhost is known to the guard.
 */
import { Resolver } from 'node:dns/promises';
import { EgressError } from './egress-error.ts';

/** All addresses of a name, as text, IPv4 first. Rejects with EgressError. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<string[]>;

export interface ResolveLimits {
  /** Default: the servers of the operating system. As `address:port`. */
  readonly servers?: readonly string[];
  readonly timeoutMs?: number;
}

/** The whole resolution; attacks C-13 row 190. */
const RESOLVE_MS_MAX = 5_000;
/** One query; the resolver doubles it for its second try. */
const QUERY_MS_MAX = 1_500;
const QUERY_TRIES = 2;
/** Aliases in a row; real chains (CDN in front of a load balancer) have two to four. */
const ALIASES_MAX = 8;
/** A server that drops CNAME queries costs no more than this; the chain is then not measured. */
const ALIAS_QUERY_MS_MAX = 1_000;

/** A resolver with its own sockets per name: cancelling one disturbs no other. */
export function createResolveName({
  servers,
  timeoutMs = RESOLVE_MS_MAX,
}: ResolveLimits = {}): ResolveName {
  return async (name, signal) => {
    const addresses = new Resolver({ timeout: QUERY_MS_MAX, tries: QUERY_TRIES });
    const aliases = new Resolver({ timeout: ALIAS_QUERY_MS_MAX, tries: 1 });
    if (servers !== undefined) for (const one of [addresses, aliases]) one.setServers(servers);
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const cancel = (): void => {
      addresses.cancel();
      aliases.cancel();
    };
    limit.addEventListener('abort', cancel, { once: true });
    try {
      const [found, isTooLong] = await Promise.all([
        resolveBoth(addresses, name, limit),
        exceedsAliases(aliases, name, limit),
      ]);
      if (isTooLong) throw new EgressError('name_chain_too_long');
      return found;
    } finally {
      limit.removeEventListener('abort', cancel);
      cancel();
    }
  };
}

async function resolveBoth(
  resolver: Resolver,
  name: string,
  limit: AbortSignal,
): Promise<string[]> {
  if (limit.aborted) throw new EgressError('name_timeout');
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (found.length > 0) return found;
  const failed = answers.find((answer) => answer.status === 'rejected');
  const isTimeout = limit.aborted || codeOf(failed?.reason) === 'ETIMEOUT';
  throw new EgressError(isTimeout ? 'name_timeout' : 'name_not_resolved', failed?.reason);
}

/** Follows the aliases one query at a time: an answer with addresses does not show its chain. */
async function exceedsAliases(
  resolver: Resolver,
  name: string,
  limit: AbortSignal,
): Promise<boolean> {
  let current: string | undefined = name;
  for (let aliases = 0; aliases <= ALIASES_MAX; aliases += 1) {
    if (limit.aborted) return false;
    try {
      [current] = await resolver.resolveCname(current);
    } catch {
      return false;
    }
    if (current === undefined) return false;
  }
  return true;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? Reflect.get(error, 'code') : undefined;
}
