/**
 * API key → application with its compiled access, per process. An entry is good at one configuration
 * version of its tenant and is never trusted by itself: every use is confirmed through the version
 * gate, and `refresh` brings it to another version or drops it (design section 5).
 */
import { type KeyObject, hash as oneShotHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Access, compileAccess } from '../../shared/access/access-rules.ts';
import { hashApiKey, isWellFormedApiKey } from '../../shared/api-keys.ts';
import type { ApplicationEntry } from '../../shared/config-entries/application-entry.ts';
import type { ConfigChange } from '../../shared/config-entries/config-change.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { type ChangedNames, createChangeRecord } from './change-record.ts';
import type { EntrySource } from './entry-source.ts';

/** Keys known to a process at once; an entry is some 2 KiB with a dozen rules. */
const ENTRIES_MAX = 20_000;

export interface CachedApplication extends Omit<ApplicationEntry, 'config_version'> {
  /** The version it was read at, or up to which no change concerned it. */
  readonly config_version: string;
  readonly access: Access;
  /** Where the cache finds it again. Not the key itself. */
  readonly digest: string;
  readonly keyHash: Buffer;
}

export interface ApplicationCache {
  /** The application last known for a key, without a query. */
  cached(apiKey: string): CachedApplication | undefined;
  /** Reads the application of a key; `undefined` when the key is unknown. */
  load(apiKey: string): Promise<CachedApplication | undefined>;
  /** The same application at the tenant's version `version`; `undefined` when its key is gone. */
  refresh(
    application: CachedApplication,
    version: string | null,
  ): Promise<CachedApplication | undefined>;
  /** A change was announced: bring what is cached of that tenant up to date early. */
  warm(change: ConfigChange): void;
}

interface CacheOptions {
  db: Queryable;
  source: EntrySource;
  pepper: KeyObject;
  /** Counts entries brought to another version, by what it took. */
  onRefresh(outcome: 'unchanged' | 'reloaded' | 'gone'): void;
  onWarmFailure(error: unknown): void;
}

export function createApplicationCache(options: CacheOptions): ApplicationCache {
  const { db, source, pepper, onRefresh, onWarmFailure } = options;
  const changesBetween = createChangeRecord(db);
  const byTenant = new Map<string, Set<string>>();
  const byDigest = new LRUCache<string, CachedApplication>({
    max: ENTRIES_MAX,
    onInsert: ({ tenant_id, digest }) => {
      const digests = byTenant.get(tenant_id);
      if (digests === undefined) byTenant.set(tenant_id, new Set([digest]));
      else digests.add(digest);
    },
    dispose: ({ tenant_id }, digest, reason) => {
      const digests = byTenant.get(tenant_id);
      if (reason !== 'set') digests?.delete(digest);
      if (digests?.size === 0) byTenant.delete(tenant_id);
    },
  });
  const loading = new Map<string, Promise<CachedApplication | undefined>>();

  async function fetchEntry(
    digest: string,
    keyHash: Buffer,
  ): Promise<CachedApplication | undefined> {
    const entry = await source(keyHash);
    if (entry === undefined) return undefined;
    const application = { ...entry, access: compileAccess(entry), digest, keyHash };
    byDigest.set(digest, application);
    return application;
  }

  /** Requests of one key that miss together share one query. */
  function loadOnce(
    digest: string,
    keyHash: Buffer,
    version: string | undefined,
  ): Promise<CachedApplication | undefined> {
    const slot = `${digest}/${version ?? ''}`;
    let pending = loading.get(slot);
    if (pending === undefined) {
      pending = fetchEntry(digest, keyHash).finally(() => loading.delete(slot));
      loading.set(slot, pending);
    }
    return pending;
  }

  async function refresh(
    application: CachedApplication,
    version: string | null,
  ): Promise<CachedApplication | undefined> {
    if (version === null) {
      byDigest.delete(application.digest);
      onRefresh('gone');
      return undefined;
    }
    const { tenant_id, config_version, digest } = application;
    const changed = await changesBetween(tenant_id, config_version, version);
    const known = byDigest.peek(digest);
    // Others have waited for the same change, and one of them was first.
    if (known?.config_version === version) return known;
    if (changed !== undefined && !concerns(changed, application)) {
      // A new object: a request under way goes on with the version it was decided at.
      const moved = { ...application, config_version: version };
      if (known === application) byDigest.set(digest, moved);
      onRefresh('unchanged');
      return moved;
    }
    byDigest.delete(digest);
    const reloaded = await loadOnce(digest, application.keyHash, version);
    onRefresh(reloaded === undefined ? 'gone' : 'reloaded');
    return reloaded;
  }

  return {
    cached: (apiKey) => byDigest.get(digestOf(apiKey)),
    async load(apiKey) {
      if (!isWellFormedApiKey(apiKey)) return undefined;
      return loadOnce(digestOf(apiKey), hashApiKey(apiKey, pepper), undefined);
    },
    refresh,
    warm({ tenant_id, version }) {
      for (const digest of byTenant.get(tenant_id) ?? []) {
        const application = byDigest.peek(digest);
        if (application !== undefined && application.config_version !== version) {
          refresh(application, version).catch(onWarmFailure);
        }
      }
    },
  };
}

/** A digest of the key, so that keys do not lie in memory as map keys. Measured: 1 µs. */
const digestOf = (apiKey: string): string => oneShotHash('sha256', apiKey, 'base64');

function concerns(changed: ChangedNames, application: CachedApplication): boolean {
  return (
    changed.has(`application/${application.application_id}`) ||
    changed.has(`tenant/${application.tenant_id}`)
  );
}
