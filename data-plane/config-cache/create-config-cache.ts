/**
 * The configuration cache with where it reads from and who tells it of changes: Redis with
 * `REDIS_URL`, else Postgres alone. Both behave the same; Redis only spares Postgres cold reads.
 */
import type { DatabaseClock } from '../../shared/clock.ts';
import { NOTICE_CHANNEL, parseNotice } from '../../shared/config-entries/config-change.ts';
import { createSealedEntries } from '../../shared/config-entries/sealed-entries.ts';
import type { DataKeys } from '../../shared/crypto/data-keys.ts';
import type { Installation } from '../../shared/crypto/installation.ts';
import type { Logger } from '../../shared/observability/logger.ts';
import type { TokenMetrics } from '../../shared/observability/token-metrics.ts';
import { listen } from '../../shared/postgres/listen.ts';
import type { Pool } from '../../shared/postgres/pool.ts';
import { createRedisStore } from '../../shared/redis/redis-store.ts';
import { createVersionGate } from '../version-gate.ts';
import { type ApplicationCache, createApplicationCache } from './application-cache.ts';
import { createChangeRecord } from './change-record.ts';
import type { RefreshOutcome } from './entry-cache.ts';
import { postgresSource, redisSource } from './entry-source.ts';
import { createProxyCache, type ProxyCache } from './proxy-cache.ts';
import { createReactorCache, type ReactorCache } from './reactor-cache.ts';

interface ConfigCacheOptions {
  pool: Pool;
  /** A connection that is not pooled in between, for LISTEN. */
  directUrl: string;
  redisUrl: string | undefined;
  installation: Installation;
  dataKeys: DataKeys;
  clock: DatabaseClock;
  metrics: TokenMetrics;
  log: Logger;
}

export interface ConfigCache {
  applications: ApplicationCache;
  reactors: ReactorCache;
  proxies: ProxyCache;
  close(): Promise<void>;
}

export function createConfigCache(options: ConfigCacheOptions): ConfigCache {
  const { pool, directUrl, redisUrl, installation, dataKeys, clock, metrics, log } = options;
  const fromPostgres = postgresSource(pool, clock);
  const redis = redisUrl === undefined ? undefined : createRedisStore(redisUrl, log);
  const source =
    redis === undefined
      ? fromPostgres
      : redisSource(pool, createSealedEntries(redis, dataKeys), fromPostgres, (outcome) =>
          metrics.redisLookups.inc({ outcome }),
        );
  // One read for the caches that a notice reaches together; not counted, since it is no request's.
  const gate = createVersionGate(pool, () => undefined);
  const shared = {
    db: pool,
    changesBetween: createChangeRecord(pool),
    versionOf: async (tenantId: string) => (await gate.read(tenantId)).config_version,
    onRefresh: (outcome: RefreshOutcome) => metrics.gateReloads.inc({ outcome }),
    onWarmFailure: (err: unknown) => log.debug({ err }, 'cache not warmed'),
  };
  const { pepper } = installation;
  const applications = createApplicationCache({ ...shared, source, pepper });
  const reactors = createReactorCache(shared);
  const proxies = createProxyCache({ ...shared, pepper });
  const onNotice = (text: string): void => {
    const change = parseNotice(text);
    if (change === undefined) return;
    applications.warm(change);
    reactors.warm(change);
    proxies.warm(change);
  };
  redis?.subscribe(NOTICE_CHANNEL, onNotice);
  const listener =
    redis === undefined ? listen(directUrl, NOTICE_CHANNEL, onNotice, log) : undefined;
  return {
    applications,
    reactors,
    proxies,
    async close() {
      redis?.close();
      await listener?.close();
    },
  };
}
