/**
 * "Is what I know of this tenant still true?" No answer carries a secret or an effect before the
 * tenant's version was read from Postgres after the request arrived (design section 5). Token reads
 * and writes bring the version along; this is the read for requests that touch no token, coalesced.
 */
import { type ConfigReading, readConfigVersions } from '../shared/config-entries/config-version.ts';
import { createBatcher } from '../shared/postgres/batcher.ts';
import { isDatabaseUnavailable, retryRead } from '../shared/postgres/database-error.ts';
import type { Queryable } from '../shared/postgres/pool.ts';

/** Thrown by a route whose application was read at another version than the tenant has now. */
export class StaleConfigError extends Error {
  readonly reading: ConfigReading;

  constructor(reading: ConfigReading) {
    super('the configuration changed');
    this.name = 'StaleConfigError';
    this.reading = reading;
  }
}

export interface VersionGate {
  /** The tenant's version, from a statement that begins after this call. */
  read(tenantId: string): Promise<ConfigReading>;
}

/** `onReload` counts the statements it takes. */
export function createVersionGate(db: Queryable, onReload: () => void): VersionGate {
  /** By tenant, what a statement that has not begun will answer: callers of one tenant share it. */
  const next = new Map<string, Promise<ConfigReading>>();
  const batcher = createBatcher<string, ConfigReading>({
    run(tenantIds) {
      onReload();
      for (const id of tenantIds) next.delete(id);
      return retryRead(() => readConfigVersions(db, tenantIds));
    },
    isOutage: isDatabaseUnavailable,
  });
  return {
    read(tenantId) {
      let reading = next.get(tenantId);
      if (reading === undefined) {
        reading = batcher.submit(tenantId);
        next.set(tenantId, reading);
        // Also when it fails without having begun.
        const forget = () => next.get(tenantId) === reading && next.delete(tenantId);
        reading.catch(forget);
      }
      return reading;
    },
  };
}
