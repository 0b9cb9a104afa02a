/**
 * After a configuration change is committed: leaves the new entries in Redis for all data planes and
 * tells them. Without Redis the notice went out with the commit (`record-change.ts`). Never throws:
 * the change is made, and data planes would find it without any of this.
 */
import {
  type ApplicationEntry,
  loadApplicationByKeyHash,
} from '../../shared/config-entries/application-entry.ts';
import { type ConfigChange, NOTICE_CHANNEL } from '../../shared/config-entries/config-change.ts';
import type { SealedEntries } from '../../shared/config-entries/sealed-entries.ts';
import type { Logger } from '../../shared/observability/logger.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import type { RedisStore } from '../../shared/redis/redis-store.ts';

export interface ChangePublisher {
  publish(change: ConfigChange): Promise<void>;
}

interface PublisherOptions {
  db: Queryable;
  /** `undefined` without `REDIS_URL`. */
  redis: { store: RedisStore; entries: SealedEntries } | undefined;
  log: Logger;
}

export function createChangePublisher({ db, redis, log }: PublisherOptions): ChangePublisher {
  async function writeEntries(change: ConfigChange, entries: SealedEntries): Promise<void> {
    const ids = change.entities.filter((e) => e.kind === 'application').map((e) => e.id);
    if (ids.length === 0) return;
    const { rows } = await db.query<{ hash: Buffer }>(
      `SELECT hash FROM application_keys WHERE tenant_id = $1 AND application_id = ANY ($2::uuid[])`,
      [change.tenant_id, ids],
    );
    for (const { hash } of rows) {
      const entry: ApplicationEntry | undefined = (await loadApplicationByKeyHash(db, hash))?.entry;
      if (entry !== undefined) await entries.write(entry, hash);
    }
  }

  return {
    async publish(change) {
      if (redis === undefined) return;
      try {
        await writeEntries(change, redis.entries);
        await redis.store.publish(NOTICE_CHANNEL, JSON.stringify(change));
      } catch (error) {
        log.warn({ err: error, tenant_id: change.tenant_id }, 'configuration change not announced');
      }
    },
  };
}
