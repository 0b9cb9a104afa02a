/**
 * The entries of a cache by slot, and which of them are whose: the least used leave when there are too
 * many or when they hold too much memory.
 */
import { LRUCache } from 'lru-cache';
import type { CachedEntry, EntryCacheOptions } from './entry-cache.ts';

/**
 * Of one cache of one process. Usual entries are some KiB, so that their number is what binds; a
 * tenant that stores megabytes of code and configuration in each gets no more than this for all.
 */
const BYTES_MAX = 64 * 1024 * 1024;
/** What an entry costs besides its texts: objects, keys of maps, compiled forms. */
const ENTRY_BYTES = 1_024;

export interface EntryStore<E extends CachedEntry> {
  get(slot: string): E | undefined;
  /** Without being used. */
  peek(slot: string): E | undefined;
  put(entry: E): void;
  drop(slot: string): void;
  /** The entry at another version, stored in its place if it is still what is there. */
  carry(entry: E, version: string): E;
  entriesOf(tenantId: string): E[];
}

/** An entry moves to another version inside of it: being carried is no use of it. */
interface Place<E> {
  entry: E;
}

export function createEntryStore<E extends CachedEntry>(
  options: Pick<EntryCacheOptions<E>, 'entries_max' | 'bytes_max' | 'bytesOf'>,
): EntryStore<E> {
  const { entries_max, bytes_max = BYTES_MAX, bytesOf } = options;
  const slotsOf = new Map<string, Set<string>>();
  const places = new LRUCache<string, Place<E>>({
    max: entries_max,
    maxSize: bytes_max,
    onInsert: ({ entry: { tenant_id } }, slot) => {
      const slots = slotsOf.get(tenant_id);
      if (slots === undefined) slotsOf.set(tenant_id, new Set([slot]));
      else slots.add(slot);
    },
    dispose: ({ entry: { tenant_id } }, slot, reason) => {
      const slots = slotsOf.get(tenant_id);
      if (reason !== 'set') slots?.delete(slot);
      if (slots?.size === 0) slotsOf.delete(tenant_id);
    },
  });
  const peek = (slot: string): E | undefined => places.peek(slot)?.entry;
  return {
    get: (slot) => places.get(slot)?.entry,
    peek,
    put(entry) {
      // One that is larger than all may be is not kept, nor is what it replaces.
      const size = bytesOf(entry);
      if (size > bytes_max) places.delete(entry.slot);
      else places.set(entry.slot, { entry }, { size });
    },
    drop: (slot) => void places.delete(slot),
    carry(entry, version) {
      // A new object: a request under way goes on with the version it was decided at.
      const moved = { ...entry, config_version: version };
      const place = places.peek(entry.slot);
      if (place?.entry === entry) place.entry = moved;
      return moved;
    },
    entriesOf: (tenantId) => [...(slotsOf.get(tenantId) ?? [])].flatMap((slot) => peek(slot) ?? []),
  };
}

/** Memory that these texts and bytes hold, about: two bytes a letter, as text with any wide one. */
export function entryBytes(...parts: readonly (string | Uint8Array | null | undefined)[]): number {
  let bytes = ENTRY_BYTES;
  for (const part of parts) {
    if (typeof part === 'string') bytes += 2 * part.length;
    else bytes += part?.length ?? 0;
  }
  return bytes;
}
