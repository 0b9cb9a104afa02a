/**
 * Why no connection was made. Neither message nor code ever holds the host, an address or text of the
 * other side: a script can put a card number into a host name to have it logged.
 */

const REASONS = {
  host_refused: 'The host is not an allowed destination',
  address_refused:
    'The host leads to an address that is not public (private ones: SALLYPORT_EGRESS_ALLOW)',
  port_refused: 'The port is not allowed',
  plain_http_refused:
    'Plain http is allowed only to destinations that SALLYPORT_EGRESS_ALLOW names',
  address_changed: 'The connection reached another address than the one that was checked',
  name_not_resolved: 'The host name could not be resolved',
  name_chain_too_long: 'The host name is an alias of too many aliases',
  name_timeout: 'Resolving the host name took too long',
  connect_failed: 'The destination could not be reached',
  connect_timeout: 'Connecting to the destination took too long',
  tls_failed:
    'No trusted TLS connection to the destination could be made (own authorities: SALLYPORT_EGRESS_CA_FILE)',
} as const;

export type EgressReason = keyof typeof REASONS;

/** Decided by us, whatever the destination does: worth a line in the log. */
const REFUSALS = new Set<EgressReason>([
  'host_refused',
  'address_refused',
  'port_refused',
  'plain_http_refused',
  'address_changed',
]);

export class EgressError extends Error {
  override readonly name = 'EgressError';
  readonly code: EgressReason;
  /** The code of the system's, the resolver's or the TLS library's error, e.g. `CERT_HAS_EXPIRED`. */
  readonly detail: string | undefined;

  constructor(code: EgressReason, cause?: unknown) {
    super(REASONS[code]);
    this.code = code;
    // Only the code: messages of these errors quote host names.
    const detail: unknown = cause instanceof Error ? Reflect.get(cause, 'code') : undefined;
    this.detail = typeof detail === 'string' ? detail : undefined;
  }

  /** The guard said no; the destination itself was not the reason. */
  get isRefusal(): boolean {
    return REFUSALS.has(this.code);
  }
}
