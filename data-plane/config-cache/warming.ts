/**
 * What a cache does about a change before a request asks: entries that it does not concern are carried
 * to the tenant's version, all others are dropped and read again by who needs them. So a change costs a
 * process a few statements, however many entries the tenant has.
 *
 * The notice is only the occasion. It may be late, doubled or forged: the version is read from
 * Postgres, and only a walk through the recorded changes carries an entry, as for a request.
 */
import type { CachedEntry, EntryCacheOptions } from './entry-cache.ts';
import type { EntryStore } from './entry-store.ts';

/** Versions that entries of one tenant are carried from at once; one statement each. Mostly one. */
const STARTS_MAX = 8;

export interface Warming {
  /** A change of the tenant, perhaps, to this version. Never throws. */
  announce(tenantId: string, version: string): void;
}

export function createWarming<E extends CachedEntry>(
  entries: EntryStore<E>,
  options: EntryCacheOptions<E>,
): Warming {
  const { changesBetween, versionOf, concerns, onRefresh, onWarmFailure } = options;
  /** Tenants that are being warmed, and whether another change was announced meanwhile. */
  const underWay = new Map<string, { again: boolean }>();

  async function warm(tenantId: string): Promise<void> {
    const version = await versionOf(tenantId);
    const starts = Map.groupBy(entries.entriesOf(tenantId), (entry) => entry.config_version);
    if (version !== null) starts.delete(version);
    let walks = 0;
    for (const [from, group] of starts) {
      walks += 1;
      const isTooMuch = version === null || walks > STARTS_MAX;
      const changed = isTooMuch ? undefined : await changesBetween(tenantId, from, version);
      for (const entry of group) {
        // Meanwhile a request may have moved it, dropped it, or read it anew.
        if (entries.peek(entry.slot) !== entry) continue;
        if (version === null || changed === undefined || concerns(changed, entry)) {
          entries.drop(entry.slot);
        } else {
          entries.carry(entry, version);
          onRefresh('unchanged');
        }
      }
    }
  }

  async function warmUntilQuiet(tenantId: string, state: { again: boolean }): Promise<void> {
    try {
      do {
        state.again = false;
        await warm(tenantId);
      } while (state.again);
    } finally {
      underWay.delete(tenantId);
    }
  }

  return {
    announce(tenantId, version) {
      const state = underWay.get(tenantId);
      if (state !== undefined) {
        state.again = true;
        return;
      }
      const known = entries.entriesOf(tenantId);
      if (known.every(({ config_version }) => config_version === version)) return;
      const begun = { again: false };
      underWay.set(tenantId, begun);
      warmUntilQuiet(tenantId, begun).catch(onWarmFailure);
    },
  };
}
