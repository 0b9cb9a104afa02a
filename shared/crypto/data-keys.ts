/**
 * Per-tenant keys: versioned data-encryption keys (DEKs) and the HMAC keys of blind indexes, wrapped
 * by the installation key in `tenant_keys`. Unwrapped once per process and kept in an LRU. Deleting a
 * tenant's rows shreds everything sealed for it.
 */
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Queryable } from '../postgres/pool.ts';
import {
  open,
  SealBrokenError,
  sealedKeyVersion,
  sealLabel,
  type VersionedKey,
} from './envelope.ts';
import type { Installation } from './installation.ts';

/** Tenants whose keys stay unwrapped in a process; some 1 KiB each. */
const TENANTS_MAX = 10_000;

const PURPOSES = ['data', 'fingerprint', 'search'] as const;
type Purpose = (typeof PURPOSES)[number];

export interface TenantKeys {
  /** Seals new values. */
  readonly current: VersionedKey;
  /** All versions that may still open old values. */
  readonly versions: ReadonlyMap<number, KeyObject>;
  /** HMAC keys: fingerprints, and search index values. */
  readonly fingerprint: KeyObject;
  readonly search: KeyObject;
}

export interface DataKeys {
  /** The tenant's keys when they are already unwrapped: no await on the hot path. */
  cached(tenantId: string): TenantKeys | undefined;
  /** The tenant's keys; throws when the tenant has none (it was deleted). */
  forTenant(tenantId: string): Promise<TenantKeys>;
  /** Opens a sealed value of the tenant, loading a key version that is new here. */
  open(tenantId: string, sealed: Buffer, label: Buffer): Promise<Buffer>;
  /** Forgets a tenant's unwrapped keys. */
  forget(tenantId: string): void;
}

const wrapLabel = (tenantId: string, purpose: Purpose, version: number): Buffer =>
  sealLabel('tenant-key', tenantId, purpose, String(version));

/** Writes the first version of each of a new tenant's keys, inside the caller's transaction. */
export async function createTenantKeys(
  db: Queryable,
  installation: Installation,
  tenantId: string,
): Promise<void> {
  const wrapped = PURPOSES.map((purpose) =>
    installation.wrap(randomBytes(32), wrapLabel(tenantId, purpose, 1)),
  );
  await db.query(
    `INSERT INTO tenant_keys (tenant_id, purpose, version, wrapped)
     SELECT $1, purpose, 1, wrapped FROM unnest($2::text[], $3::bytea[]) AS k (purpose, wrapped)`,
    [tenantId, PURPOSES, wrapped],
  );
}

/** Opens with one of the versions at hand; `undefined` when the value names another version. */
export function openWith(keys: TenantKeys, sealed: Buffer, label: Buffer): Buffer | undefined {
  const key = keys.versions.get(sealedKeyVersion(sealed));
  return key === undefined ? undefined : open(key, sealed, label);
}

export function createDataKeys(db: Queryable, installation: Installation): DataKeys {
  const cache = new LRUCache<string, TenantKeys>({ max: TENANTS_MAX });
  const loading = new Map<string, Promise<TenantKeys>>();

  async function load(tenantId: string): Promise<TenantKeys> {
    const { rows } = await db.query<{ purpose: Purpose; version: number; wrapped: Buffer }>(
      'SELECT purpose, version, wrapped FROM tenant_keys WHERE tenant_id = $1 ORDER BY version',
      [tenantId],
    );
    const versions = new Map<number, KeyObject>();
    const latest = new Map<Purpose, VersionedKey>();
    for (const { purpose, version, wrapped } of rows) {
      const key = createSecretKey(
        installation.unwrap(wrapped, wrapLabel(tenantId, purpose, version)),
      );
      if (purpose === 'data') versions.set(version, key);
      latest.set(purpose, { version, key });
    }
    const current = latest.get('data');
    const fingerprint = latest.get('fingerprint')?.key;
    const search = latest.get('search')?.key;
    if (current === undefined || fingerprint === undefined || search === undefined) {
      throw new SealBrokenError();
    }
    const keys: TenantKeys = { current, versions, fingerprint, search };
    cache.set(tenantId, keys);
    return keys;
  }

  function reload(tenantId: string): Promise<TenantKeys> {
    let pending = loading.get(tenantId);
    if (pending === undefined) {
      pending = load(tenantId).finally(() => loading.delete(tenantId));
      loading.set(tenantId, pending);
    }
    return pending;
  }

  const forTenant = async (tenantId: string): Promise<TenantKeys> =>
    cache.get(tenantId) ?? reload(tenantId);

  return {
    cached: (tenantId) => cache.get(tenantId),
    forTenant,
    forget: (tenantId) => cache.delete(tenantId),
    async open(tenantId, sealed, label) {
      const opened = openWith(await forTenant(tenantId), sealed, label);
      if (opened !== undefined) return opened;
      const reloaded = openWith(await reload(tenantId), sealed, label);
      if (reloaded === undefined) throw new SealBrokenError();
      return reloaded;
    },
  };
}
