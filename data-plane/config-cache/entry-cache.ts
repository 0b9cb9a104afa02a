/**
 * What a process knows of its tenants' configuration. An entry is good at one configuration version
 * of its tenant and is never trusted by itself: every use is confirmed through the version gate, and
 * `refresh` brings it to another version or drops it (design section 5).
 */
import type { ConfigChange } from '../../shared/config-entries/config-change.ts';
import type { ChangedNames, ChangeRecord } from './change-record.ts';
import { createEntryStore } from './entry-store.ts';
import { createWarming } from './warming.ts';

export interface CachedEntry {
  readonly tenant_id: string;
  /** The version it was read at, or up to which no change concerned it. */
  readonly config_version: string;
  /** Where the cache finds it again. */
  readonly slot: string;
}

export type RefreshOutcome = 'unchanged' | 'reloaded' | 'gone';

export interface EntryCache<E extends CachedEntry> {
  /** The entry last known, without a query. */
  cached(slot: string): E | undefined;
  /** Reads an entry; requests of one slot that miss together share one query. */
  load(slot: string, read: () => Promise<E | undefined>): Promise<E | undefined>;
  /** The same entry at the tenant's version `version`; `undefined` when it is gone. */
  refresh(entry: E, version: string | null): Promise<E | undefined>;
  /** A change was announced: bring what is cached of that tenant up to date early. */
  warm(change: Pick<ConfigChange, 'tenant_id' | 'version'>): void;
}

export interface EntryCacheOptions<E> {
  entries_max: number;
  /** Of all entries together; 64 MiB unless given. */
  bytes_max?: number;
  /** Memory that an entry holds, about. */
  bytesOf(entry: E): number;
  changesBetween: ChangeRecord;
  /** The tenant's version as it is now; `null` when the tenant is gone. */
  versionOf(tenantId: string): Promise<string | null>;
  /** Reads the entry as it is now. */
  reload(entry: E): Promise<E | undefined>;
  /** Whether one of the changes may have changed the entry. */
  concerns(changed: ChangedNames, entry: E): boolean;
  /** Counts entries brought to another version, by what it took. */
  onRefresh(outcome: RefreshOutcome): void;
  onWarmFailure(error: unknown): void;
}

export function createEntryCache<E extends CachedEntry>(
  options: EntryCacheOptions<E>,
): EntryCache<E> {
  const { changesBetween, reload, concerns, onRefresh } = options;
  const entries = createEntryStore<E>(options);
  const loading = new Map<string, Promise<E | undefined>>();

  async function keep(read: () => Promise<E | undefined>): Promise<E | undefined> {
    const entry = await read();
    if (entry !== undefined) entries.put(entry);
    return entry;
  }

  function loadOnce(question: string, read: () => Promise<E | undefined>): Promise<E | undefined> {
    let pending = loading.get(question);
    if (pending === undefined) {
      pending = keep(read).finally(() => loading.delete(question));
      loading.set(question, pending);
    }
    return pending;
  }

  async function refresh(entry: E, version: string | null): Promise<E | undefined> {
    const { tenant_id, config_version, slot } = entry;
    if (version === null) {
      entries.drop(slot);
      onRefresh('gone');
      return undefined;
    }
    const changed = await changesBetween(tenant_id, config_version, version);
    const known = entries.peek(slot);
    // Others have waited for the same change, and one of them was first.
    if (known?.config_version === version) return known;
    if (changed !== undefined && !concerns(changed, entry)) {
      const moved = entries.carry(entry, version);
      onRefresh('unchanged');
      return moved;
    }
    entries.drop(slot);
    const reloaded = await loadOnce(`${slot}@${version}`, () => reload(entry));
    onRefresh(reloaded === undefined ? 'gone' : 'reloaded');
    return reloaded;
  }

  const warming = createWarming(entries, options);
  return {
    cached: entries.get,
    load: loadOnce,
    refresh,
    warm: ({ tenant_id, version }) => warming.announce(tenant_id, version),
  };
}
