/** Applications with their compiled access, per process: by API key, and by id for scripts. */
import { type KeyObject, hash as oneShotHash } from 'node:crypto';
import { type Access, compileAccess } from '../../shared/access/access-rules.ts';
import { hashApiKey, isWellFormedApiKey } from '../../shared/api-keys.ts';
import {
  type ApplicationEntry,
  loadApplicationById,
} from '../../shared/config-entries/application-entry.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { type ChangedNames, type ChangeRecord, createChangeRecord } from './change-record.ts';
import {
  createEntryCache,
  type EntryCache,
  type EntryCacheOptions,
  type RefreshOutcome,
} from './entry-cache.ts';
import type { EntrySource } from './entry-source.ts';
import { entryBytes } from './entry-store.ts';

/** Applications known to a process at once; an entry is some 2 KiB with a dozen rules. */
const ENTRIES_MAX = 20_000;

export interface CachedApplication extends Omit<ApplicationEntry, 'config_version'> {
  /** The version it was read at, or up to which no change concerned it. */
  readonly config_version: string;
  readonly access: Access;
  /** Where the cache finds it again. Not the key itself. */
  readonly slot: string;
  /** By what it is read again: the hash of the key it was found by, else its id. */
  readonly keyHash: Buffer | undefined;
}

export interface ApplicationCache extends Pick<EntryCache<CachedApplication>, 'refresh' | 'warm'> {
  /** The application last known for a key, without a query. */
  cached(apiKey: string): CachedApplication | undefined;
  /** Reads the application of a key; `undefined` when the key is unknown. */
  load(apiKey: string): Promise<CachedApplication | undefined>;
  /**
   * An application by its id, cached or read; `undefined` when the tenant has none of that id. Like
   * one found by its key it must be confirmed before it is used.
   */
  byId(tenantId: string, applicationId: string): Promise<CachedApplication | undefined>;
  /** The application of a key that only its hash is known of, for what was accepted earlier. */
  byKeyHash(keyHash: Buffer): Promise<CachedApplication | undefined>;
}

interface CacheOptions {
  db: Queryable;
  /** Shared with other caches; a record of its own unless given. */
  changesBetween?: ChangeRecord;
  versionOf: EntryCacheOptions<unknown>['versionOf'];
  source: EntrySource;
  pepper: KeyObject;
  /** Counts entries brought to another version, by what it took. */
  onRefresh(outcome: RefreshOutcome): void;
  onWarmFailure(error: unknown): void;
}

export function createApplicationCache(options: CacheOptions): ApplicationCache {
  const { db, source, pepper, versionOf, onRefresh, onWarmFailure } = options;
  const entries = createEntryCache<CachedApplication>({
    entries_max: ENTRIES_MAX,
    changesBetween: options.changesBetween ?? createChangeRecord(db),
    reload: ({ tenant_id, application_id, slot, keyHash }) =>
      keyHash === undefined ? readById(tenant_id, application_id, slot) : readByKey(keyHash, slot),
    ...{ bytesOf, versionOf, concerns, onRefresh, onWarmFailure },
  });

  async function readByKey(keyHash: Buffer, slot: string): Promise<CachedApplication | undefined> {
    const entry = await source(keyHash);
    return entry && { ...entry, access: compileAccess(entry), slot, keyHash };
  }

  async function readById(
    tenantId: string,
    applicationId: string,
    slot: string,
  ): Promise<CachedApplication | undefined> {
    const entry = (await loadApplicationById(db, tenantId, applicationId))?.entry;
    return entry && { ...entry, access: compileAccess(entry), slot, keyHash: undefined };
  }

  return {
    cached: (apiKey) => entries.cached(digestOf(apiKey)),
    async load(apiKey) {
      if (!isWellFormedApiKey(apiKey)) return undefined;
      const slot = digestOf(apiKey);
      return entries.load(slot, () => readByKey(hashApiKey(apiKey, pepper), slot));
    },
    async byId(tenantId, applicationId) {
      // No digest has a colon, so the two kinds of slots cannot meet.
      const slot = `id:${tenantId}/${applicationId}`;
      const known = entries.cached(slot);
      return known ?? entries.load(slot, () => readById(tenantId, applicationId, slot));
    },
    async byKeyHash(keyHash) {
      const slot = `hash:${keyHash.toString('base64')}`;
      return entries.cached(slot) ?? entries.load(slot, () => readByKey(keyHash, slot));
    },
    refresh: entries.refresh,
    warm: entries.warm,
  };
}

/** A digest of the key, so that keys do not lie in memory as map keys. Measured: 1 µs. */
const digestOf = (apiKey: string): string => oneShotHash('sha256', apiKey, 'base64');

function bytesOf({ permissions, rules, settings }: CachedApplication): number {
  const texts = JSON.stringify([permissions, rules, settings]);
  // Once as they are, once compiled.
  return entryBytes(texts, texts);
}

function concerns(changed: ChangedNames, application: CachedApplication): boolean {
  return (
    changed.has(`application/${application.application_id}`) ||
    changed.has(`tenant/${application.tenant_id}`)
  );
}
