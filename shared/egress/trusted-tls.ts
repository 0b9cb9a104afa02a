/**
 * TLS on a socket of the guard: 1.2 or newer, the certificate verified for the host that was asked
 * for. It must never be made laxer by an option of a caller, a flag or a variable of the environment.
 */

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import {
  connect,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { EgressError } from './egress-error.ts';
import type { Host } from './host-rules.ts';
import { formatIpAddress } from './ip-address.ts';

export interface TlsMaterial {
  /** PEM certificates trusted besides those that Node trusts. */
  readonly extraCa?: readonly string[];
  /** Our own certificate chain and key, for destinations that ask for one; PEM. */
  readonly cert?: string;
  readonly key?: string;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Built once and shared by connections: reading all roots takes milliseconds. Throws on bad PEM. */
export function createTrust({ extraCa = [], cert, key }: TlsMaterial): SecureContext {
  return createSecureContext({
    minVersion: 'TLSv1.2',
    // `ca` replaces the roots; leaving it out shares Node's own copy of them.
    ...(extraCa.length > 0 ? { ca: [...getCACertificates('default'), ...extraCa] } : {}),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  });
}

/**
 * The handshake on a connected socket, with the host as server name (none for an address, RFC 6066
 * section 3). No sessions are resumed: a resumed one is not checked for its host again.
 * Rejects with EgressError; then the socket is closed.
 */
export async function secureSocket(
  socket: Socket,
  host: Host,
  trust: SecureContext,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const name = host.kind === 'name' ? host.name : formatIpAddress(host.address);
  const secured = connect({
    socket,
    host: name,
    servername: host.kind === 'name' ? name : '',
    secureContext: trust,
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  });
  // Until its user listens; without a listener an error would end the process.
  secured.on('error', () => undefined);
  try {
    await once(secured, 'secureConnect', { signal });
  } catch (error) {
    secured.destroy();
    socket.destroy();
    throw new EgressError(signal.aborted ? 'connect_timeout' : 'tls_failed', error);
  }
  return secured;
}

/**
 * The certificates of a PEM file (SALLYPORT_EGRESS_CA_FILE). Throws an error that says what is wrong
 * with the file, for the start to print: unreadable, no certificate, or one that does not parse.
 */
export function readCaFile(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error('SALLYPORT_EGRESS_CA_FILE names a file that cannot be read', { cause: error });
  }
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) {
    throw new Error('SALLYPORT_EGRESS_CA_FILE names a file without a PEM certificate');
  }
  for (const certificate of certificates) {
    try {
      new X509Certificate(certificate);
    } catch (error) {
      throw new Error('SALLYPORT_EGRESS_CA_FILE holds a broken certificate', { cause: error });
    }
  }
  return [...certificates];
}
