/**
 * Configuration entries in Redis, sealed with the tenant's data key and bound to tenant and key hash:
 * whoever reads or writes Redis learns nothing and can forge nothing.
 */
import type { DataKeys } from '../crypto/data-keys.ts';
import { seal, sealLabel } from '../crypto/envelope.ts';
import type { RedisStore } from '../redis/redis-store.ts';
import type { ApplicationEntry } from './application-entry.ts';

/** Entries nobody asked for in this time leave Redis. */
const LIFETIME_SECONDS = 86_400;

export interface SealedEntries {
  /** `undefined` when there is none, Redis does not answer, or the value is not ours. */
  read(tenantId: string, keyHash: Buffer): Promise<ApplicationEntry | undefined>;
  /** Never throws: a lost write costs others a query. */
  write(entry: ApplicationEntry, keyHash: Buffer): Promise<void>;
}

const label = (tenantId: string, keyHash: Buffer): Buffer =>
  sealLabel('config-entry', tenantId, 'application', keyHash.toString('hex'));

/** The braces keep a tenant's entries in one slot of a Redis cluster. */
const redisKey = (tenantId: string, keyHash: Buffer): string =>
  `sallyport:{${tenantId}}:application:${keyHash.toString('hex')}`;

export function createSealedEntries(redis: RedisStore, dataKeys: DataKeys): SealedEntries {
  return {
    async read(tenantId, keyHash) {
      const sealed = await redis.get(redisKey(tenantId, keyHash));
      if (sealed === undefined) return undefined;
      try {
        const opened = await dataKeys.open(tenantId, sealed, label(tenantId, keyHash));
        return JSON.parse(opened.toString('utf8')) as ApplicationEntry;
      } catch {
        return undefined;
      }
    },
    async write(entry, keyHash) {
      const keys = await dataKeys.forTenant(entry.tenant_id).catch(() => undefined);
      if (keys === undefined) return;
      const text = Buffer.from(JSON.stringify(entry));
      const sealed = seal(keys.current, text, label(entry.tenant_id, keyHash));
      await redis.set(redisKey(entry.tenant_id, keyHash), sealed, LIFETIME_SECONDS);
    },
  };
}
