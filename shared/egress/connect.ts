/**
 * One guarded connection from name to usable socket: judge, connect, prove, secure. It must never
 * hand out a socket on which a step was left out.
 */
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { EgressError } from './egress-error.ts';
import { checkedAddresses, type GuardRules, openSocket, targetOf } from './guard.ts';
import { secureSocket } from './trusted-tls.ts';

/**
 * A connected, checked socket to a host as a URL or a socket's options name it; with TLS unless
 * `isPlain`. Rejects with EgressError; then no socket is left open.
 */
export type Connect = (hostname: string, port: number, isPlain: boolean) => Promise<Socket>;

export interface ConnectSettings {
  readonly rules: GuardRules;
  readonly trust: SecureContext;
  /** From resolving the name to the end of the TLS handshake. */
  readonly timeoutMs: number;
  readonly onRefused: (error: EgressError) => void;
}

/** Probes of a silent peer on an idle connection, so that dead ones do not stay in a pool. */
const TCP_KEEP_ALIVE_MS = 60_000;

export function createConnect({ rules, trust, timeoutMs, onRefused }: ConnectSettings): Connect {
  return async (hostname, port, isPlain) => {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const target = targetOf(hostname, port, isPlain);
      const addresses = await checkedAddresses(target, rules, signal);
      const plain = await openSocket(addresses, port, signal);
      plain.setNoDelay(true).setKeepAlive(true, TCP_KEEP_ALIVE_MS);
      const socket = isPlain ? plain : await secureSocket(plain, target.host, trust, signal);
      // The other end may have closed it already; nobody would hear of that any more.
      if (socket.destroyed) throw new EgressError('connect_failed');
      return socket;
    } catch (error) {
      const failure =
        error instanceof EgressError ? error : new EgressError('connect_failed', error);
      if (failure.isRefusal) onRefused(failure);
      throw failure;
    }
  };
}
