/**
 * A proxy as data planes cache it: where it leads, what its transforms run, and its configuration, which
 * stays sealed until a transform needs it, with the tenant's configuration version it was read at.
 */
import type { LeakTripwire } from '../api/proxies.ts';
import type { Queryable } from '../postgres/pool.ts';

export interface TransformEntry {
  code: string;
  /** Changes with the code. */
  code_version: string;
}

export interface ProxyEntry {
  tenant_id: string;
  proxy_id: string;
  destination_url: string;
  /** Whether calls need an API key besides the key of the proxy. */
  require_auth: boolean;
  request_transform: TransformEntry | null;
  response_transform: TransformEntry | null;
  /** Whose permissions `req.bt` has; it may be gone by now. */
  application_id: string | null;
  configuration_sealed: Buffer | null;
  leak_tripwire: LeakTripwire;
  config_version: string;
}

const BY_KEY_HASH = {
  name: 'proxy-by-key-hash',
  text: `
    SELECT p.tenant_id, p.id AS proxy_id, p.destination_url, p.require_auth,
           p.request_transform, p.response_transform, p.application_id,
           p.configuration_sealed, p.leak_tripwire, t.config_version
    FROM key_directory d
    JOIN tenants t ON t.id = d.tenant_id
    JOIN proxies p ON p.tenant_id = d.tenant_id AND p.id = d.id
    WHERE d.hash = $1 AND d.kind = 'proxy'`,
};

/** The proxy whose key has this hash, with its version, in one statement. */
export async function loadProxyByKeyHash(
  db: Queryable,
  hash: Buffer,
): Promise<ProxyEntry | undefined> {
  const { rows } = await db.query<ProxyEntry>({ ...BY_KEY_HASH, values: [hash] });
  return rows[0];
}
