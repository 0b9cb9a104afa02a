/**
 * Where a cache entry comes from: Postgres alone, or the sealed copy in Redis when Postgres says that
 * it is current. Redis is never an authority: losing it changes nothing but speed.
 */
import type { DatabaseClock } from '../../shared/clock.ts';
import {
  type ApplicationEntry,
  loadApplicationByKeyHash,
} from '../../shared/config-entries/application-entry.ts';
import type { SealedEntries } from '../../shared/config-entries/sealed-entries.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';

/** Reads the application of a key hash as it is now; `undefined` when the key is not known. */
export type EntrySource = (keyHash: Buffer) => Promise<ApplicationEntry | undefined>;

export function postgresSource(db: Queryable, clock: DatabaseClock): EntrySource {
  return async (keyHash) => {
    const loaded = await loadApplicationByKeyHash(db, keyHash);
    if (loaded === undefined) return undefined;
    clock.observe(loaded.now_ms);
    return loaded.entry;
  };
}

/**
 * Postgres answers whose key it is and which version holds, in two index probes; the entry itself
 * comes from Redis if it is of that version, else from Postgres, and is then left for other workers.
 */
export function redisSource(
  db: Queryable,
  entries: SealedEntries,
  postgres: EntrySource,
  onLookup: (outcome: 'hit' | 'miss') => void,
): EntrySource {
  return async (keyHash) => {
    const { rows } = await db.query<{ tenant_id: string; config_version: string }>({
      name: 'config-version-by-key-hash',
      text: `
        SELECT d.tenant_id, t.config_version FROM key_directory d
        JOIN tenants t ON t.id = d.tenant_id
        WHERE d.hash = $1 AND d.kind = 'application'`,
      values: [keyHash],
    });
    const owner = rows[0];
    if (owner === undefined) return undefined;
    const kept = await entries.read(owner.tenant_id, keyHash);
    if (kept?.config_version === owner.config_version) {
      onLookup('hit');
      return kept;
    }
    onLookup('miss');
    const entry = await postgres(keyHash);
    if (entry !== undefined) void entries.write(entry, keyHash);
    return entry;
  };
}
