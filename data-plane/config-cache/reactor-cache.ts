/** Reactors with their formulas, per process. Read from Postgres: a row of one index probe. */
import { loadReactor, type ReactorEntry } from '../../shared/config-entries/reactor-entry.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import type { ChangedNames, ChangeRecord } from './change-record.ts';
import {
  createEntryCache,
  type EntryCache,
  type EntryCacheOptions,
  type RefreshOutcome,
} from './entry-cache.ts';
import { entryBytes } from './entry-store.ts';

/** Reactors known to a process at once, if their code is of some KiB; at most it is 1 MiB. */
const ENTRIES_MAX = 1_000;

export interface CachedReactor extends Omit<ReactorEntry, 'config_version'> {
  readonly config_version: string;
  readonly slot: string;
}

export interface ReactorCache extends Pick<EntryCache<CachedReactor>, 'refresh' | 'warm'> {
  /**
   * The reactor at the version that its caller is judged by, or at another one when the configuration moved
   * meanwhile; `undefined` when the tenant has none of that id (a uuid). A promise only where it must be read.
   */
  at(
    tenantId: string,
    reactorId: string,
    version: string,
  ): CachedReactor | Promise<CachedReactor | undefined>;
}

interface CacheOptions {
  db: Queryable;
  changesBetween: ChangeRecord;
  versionOf: EntryCacheOptions<unknown>['versionOf'];
  onRefresh(outcome: RefreshOutcome): void;
  onWarmFailure(error: unknown): void;
}

export function createReactorCache(options: CacheOptions): ReactorCache {
  const { db, changesBetween, versionOf, onRefresh, onWarmFailure } = options;
  const entries = createEntryCache<CachedReactor>({
    entries_max: ENTRIES_MAX,
    ...{ bytesOf, changesBetween, versionOf, concerns, onRefresh, onWarmFailure },
    reload: ({ tenant_id, reactor_id, slot }) => read(tenant_id, reactor_id, slot),
  });

  async function read(
    tenantId: string,
    reactorId: string,
    slot: string,
  ): Promise<CachedReactor | undefined> {
    const entry = await loadReactor(db, tenantId, reactorId);
    return entry && { ...entry, slot };
  }

  return {
    at(tenantId, reactorId, version) {
      const slot = `${tenantId}/${reactorId}`;
      const known = entries.cached(slot);
      if (known === undefined) return entries.load(slot, () => read(tenantId, reactorId, slot));
      return known.config_version === version ? known : entries.refresh(known, version);
    },
    refresh: entries.refresh,
    warm: entries.warm,
  };
}

function bytesOf(reactor: CachedReactor): number {
  const { code, configuration, request_parameters, configuration_sealed } = reactor;
  const declared = JSON.stringify([configuration, request_parameters]);
  return entryBytes(code, configuration_sealed, declared);
}

function concerns(changed: ChangedNames, reactor: CachedReactor): boolean {
  return (
    changed.has(`reactor/${reactor.reactor_id}`) ||
    changed.has(`tenant/${reactor.tenant_id}`) ||
    (reactor.formula_id !== null && changed.has(`reactor_formula/${reactor.formula_id}`))
  );
}
