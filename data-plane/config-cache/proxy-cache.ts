/** Proxies by their key, per process. Read from Postgres: a row of three index probes. */
import { type KeyObject, hash as oneShotHash } from 'node:crypto';
import { hashProxyKey, isWellFormedProxyKey } from '../../shared/api-keys.ts';
import { loadProxyByKeyHash, type ProxyEntry } from '../../shared/config-entries/proxy-entry.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import { type Destination, readDestination } from '../proxy/destination.ts';
import type { ChangedNames, ChangeRecord } from './change-record.ts';
import {
  createEntryCache,
  type EntryCache,
  type EntryCacheOptions,
  type RefreshOutcome,
} from './entry-cache.ts';
import { entryBytes } from './entry-store.ts';

/** Proxies known to a process at once, if they have no transforms of many KiB. */
const ENTRIES_MAX = 5_000;

export interface CachedProxy extends Omit<ProxyEntry, 'config_version'> {
  /** The version it was read at, or up to which no change concerned it. */
  readonly config_version: string;
  readonly slot: string;
  /** `destination_url`, read once. */
  readonly destination: Destination;
  /** By what it is read again. Not the key itself; empty for a proxy that is stored nowhere. */
  readonly keyHash: Buffer;
}

export interface ProxyCache extends Pick<EntryCache<CachedProxy>, 'refresh' | 'warm'> {
  /** The proxy last known for a key, without a query. */
  cached(proxyKey: string): CachedProxy | undefined;
  /** Reads the proxy of a key; `undefined` when the key is unknown. */
  load(proxyKey: string): Promise<CachedProxy | undefined>;
}

interface CacheOptions {
  db: Queryable;
  pepper: KeyObject;
  changesBetween: ChangeRecord;
  versionOf: EntryCacheOptions<unknown>['versionOf'];
  onRefresh(outcome: RefreshOutcome): void;
  onWarmFailure(error: unknown): void;
}

export function createProxyCache(options: CacheOptions): ProxyCache {
  const { db, pepper, changesBetween, versionOf, onRefresh, onWarmFailure } = options;
  const entries = createEntryCache<CachedProxy>({
    entries_max: ENTRIES_MAX,
    ...{ bytesOf, changesBetween, versionOf, concerns, onRefresh, onWarmFailure },
    reload: ({ keyHash, slot }) => read(keyHash, slot),
  });

  async function read(keyHash: Buffer, slot: string): Promise<CachedProxy | undefined> {
    const entry = await loadProxyByKeyHash(db, keyHash);
    if (entry === undefined) return undefined;
    return { ...entry, slot, keyHash, destination: readDestination(entry.destination_url) };
  }

  return {
    cached: (proxyKey) => entries.cached(digestOf(proxyKey)),
    async load(proxyKey) {
      if (!isWellFormedProxyKey(proxyKey)) return undefined;
      const slot = digestOf(proxyKey);
      return entries.load(slot, () => read(hashProxyKey(proxyKey, pepper), slot));
    },
    refresh: entries.refresh,
    warm: entries.warm,
  };
}

/** A digest of the key, so that keys do not lie in memory as map keys. */
const digestOf = (proxyKey: string): string => oneShotHash('sha256', proxyKey, 'base64');

function bytesOf({ destination_url, configuration_sealed, ...proxy }: CachedProxy): number {
  const { request_transform, response_transform } = proxy;
  const codes = [request_transform?.code, response_transform?.code];
  return entryBytes(destination_url, configuration_sealed, ...codes);
}

function concerns(changed: ChangedNames, proxy: CachedProxy): boolean {
  return changed.has(`proxy/${proxy.proxy_id}`) || changed.has(`tenant/${proxy.tenant_id}`);
}
