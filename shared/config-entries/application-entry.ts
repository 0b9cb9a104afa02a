/**
 * An application as data planes cache it: who a key belongs to and what it may do, together with the
 * tenant's configuration version it was read at. Plain JSON, so that it can be sealed into Redis.
 */
import type { AccessRule } from '../access/access-rules.ts';
import type { ApplicationType } from '../access/permissions.ts';
import type { Queryable } from '../postgres/pool.ts';

export interface ApplicationEntry {
  tenant_id: string;
  application_id: string;
  type: ApplicationType;
  permissions: string[];
  rules: AccessRule[];
  /** Milliseconds since the epoch; `null` never expires. */
  expires_at_ms: number | null;
  /** Tenant settings that tokens obey. */
  settings: Record<string, string>;
  config_version: string;
}

export interface LoadedApplication {
  entry: ApplicationEntry;
  /** The database's clock at the read, milliseconds since the epoch. */
  now_ms: number;
}

const COLUMNS = `
  a.tenant_id, a.id AS application_id, a.type, a.permissions, a.rules, t.settings,
  t.config_version, (extract(epoch FROM a.expires_at) * 1000)::float8 AS expires_at_ms,
  (extract(epoch FROM clock_now()) * 1000)::float8 AS now_ms`;

const BY_KEY_HASH = {
  name: 'application-by-key-hash',
  text: `
    SELECT ${COLUMNS}
    FROM key_directory d
    JOIN tenants t ON t.id = d.tenant_id
    JOIN applications a ON a.tenant_id = d.tenant_id AND a.id = d.id
    WHERE d.hash = $1 AND d.kind = 'application'`,
};

const BY_ID = {
  name: 'application-by-id',
  text: `
    SELECT ${COLUMNS} FROM applications a JOIN tenants t ON t.id = a.tenant_id
    WHERE a.tenant_id = $1 AND a.id = $2`,
};

/** The application whose key has this hash, with its version, in one statement. */
export function loadApplicationByKeyHash(
  db: Queryable,
  hash: Buffer,
): Promise<LoadedApplication | undefined> {
  return loadOne(db, { ...BY_KEY_HASH, values: [hash] });
}

/** The application of a tenant by its id, for what runs with its rights but without its key. */
export function loadApplicationById(
  db: Queryable,
  tenantId: string,
  applicationId: string,
): Promise<LoadedApplication | undefined> {
  return loadOne(db, { ...BY_ID, values: [tenantId, applicationId] });
}

async function loadOne(
  db: Queryable,
  statement: { name: string; text: string; values: unknown[] },
): Promise<LoadedApplication | undefined> {
  const { rows } = await db.query<ApplicationEntry & { now_ms: number }>(statement);
  const row = rows[0];
  if (row === undefined) return undefined;
  const { now_ms, ...entry } = row;
  return { entry, now_ms };
}
