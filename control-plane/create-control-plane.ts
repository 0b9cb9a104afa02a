/**
 * One control plane: its connections, its listener, its background work, made from settings and ended
 * in order. Reads no environment and handles no signal, so that a test can run it too.
 */
import { createServer } from 'node:http';
import manifest from '../package.json' with { type: 'json' };
import { createSealedEntries } from '../shared/config-entries/sealed-entries.ts';
import { createDataKeys, type DataKeys } from '../shared/crypto/data-keys.ts';
import { loadInstallation } from '../shared/crypto/installation.ts';
import type { KeyEncryption } from '../shared/crypto/local-key.ts';
import type { AddressRange } from '../shared/egress/ip-address.ts';
import { guardListener, LISTENER_OPTIONS } from '../shared/http/listener.ts';
import { createHttpMetrics } from '../shared/observability/http-metrics.ts';
import { createIdempotencyCounter } from '../shared/observability/idempotency-metrics.ts';
import type { Logger } from '../shared/observability/logger.ts';
import { createMetrics } from '../shared/observability/metrics.ts';
import { isDatabaseUnavailable } from '../shared/postgres/database-error.ts';
import { createPool } from '../shared/postgres/pool.ts';
import { closeServer, listen } from '../shared/process/listen.ts';
import { checkReadiness } from '../shared/process/readiness.ts';
import { retryUntilAvailable } from '../shared/process/retry-until-available.ts';
import type { Plane } from '../shared/process/serve-plane.ts';
import { createRedisStore } from '../shared/redis/redis-store.ts';
import { createScriptChecker } from '../shared/sandbox/script-checker.ts';
import { createApp } from './app.ts';
import { createChangePublisher } from './config-changes/publish-change.ts';
import { isMigrated } from './migrate.ts';
import { createCodeChecks } from './scripts/code-checks.ts';
import { startPurge } from './tenants/purge-deleted-tenants.ts';

export interface ControlPlaneSettings {
  databaseUrl: string;
  databasePoolMax: number;
  kek: KeyEncryption;
  redisUrl: string | undefined;
  testClockOffsetSeconds: number | undefined;
  /** Refuse code when the sandbox that checks it cannot be cut off from the network. */
  sandboxStrict: boolean;
  /** Ranges of the operator's own that proxies may lead to. */
  egressAllow: readonly AddressRange[];
  /** 0 takes any free port. */
  port: number;
  /** Unset: every interface. */
  host: string | undefined;
}

/** Nothing is opened before `start`. */
export function createControlPlane(settings: ControlPlaneSettings, log: Logger): Plane {
  const pool = createPool({
    connectionString: settings.databaseUrl,
    max: settings.databasePoolMax,
    applicationName: 'sallyport-control-plane',
    clockOffsetSeconds: settings.testClockOffsetSeconds,
    log,
  });
  const metrics = createMetrics(manifest, pool);
  /** What runs, in the order it came up; ended last to first. */
  const closers: (() => Promise<void>)[] = [() => pool.end()];
  let draining = false;

  async function start(): Promise<number> {
    const installation = await retryUntilAvailable(() => loadInstallation(pool, settings.kek), log);
    const dataKeys = createDataKeys(pool, installation);
    const redis = openRedis(settings.redisUrl, dataKeys, log);
    if (redis !== undefined) closers.push(async () => redis.store.close());
    // Starts a sandbox host when there is code to check, and ends it when there was none for a while.
    const scripts = createScriptChecker({ strict: settings.sandboxStrict });
    closers.push(() => scripts.close());
    const idempotent = createIdempotencyCounter(metrics);
    const app = createApp({
      pool,
      installation,
      dataKeys,
      codeChecks: createCodeChecks(scripts),
      egressAllow: settings.egressAllow,
      publisher: createChangePublisher({ db: pool, redis, log }),
      log,
      http: createHttpMetrics(metrics, 'control'),
      countNotDone: (outcome) => idempotent.inc({ outcome }),
      isDraining: () => draining,
    });
    const server = createServer(LISTENER_OPTIONS);
    guardListener(server, app.callback());
    const port = await listen(server, settings.port, settings.host);
    const purge = startPurge({ pool, log });
    closers.push(
      () => purge.stop(),
      () => closeServer(server),
    );
    return port;
  }

  return {
    metrics,
    start,
    readiness: () =>
      checkReadiness({
        draining: () => !draining,
        database: async () => (await pool.query('SELECT 1')).rowCount === 1,
        migrations: () => isMigrated(pool).catch(isDatabaseUnavailable),
      }),
    stop: async () => {
      draining = true;
      for (const close of closers.toReversed()) await close();
    },
  };
}

function openRedis(
  url: string | undefined,
  dataKeys: DataKeys,
  log: Logger,
):
  | { store: ReturnType<typeof createRedisStore>; entries: ReturnType<typeof createSealedEntries> }
  | undefined {
  if (url === undefined) return undefined;
  const store = createRedisStore(url, log);
  return { store, entries: createSealedEntries(store, dataKeys) };
}
