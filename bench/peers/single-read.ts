/**
 * The peer of batched reads: the data plane's own server, routes and services, with each read a
 * statement of its own. Only the reader differs from data-plane/worker.ts.
 */
import { createApplicationCache } from '../../data-plane/config-cache/application-cache.ts';
import { postgresSource } from '../../data-plane/config-cache/entry-source.ts';
import { createRelay } from '../../data-plane/relay.ts';
import { createDataPlaneServer } from '../../data-plane/server.ts';
import { createServices } from '../../data-plane/services.ts';
import { createAuditWriter } from '../../shared/audit/write-audit.ts';
import { createDatabaseClock } from '../../shared/clock.ts';
import { readConfigVersions } from '../../shared/config-entries/config-version.ts';
import { createDataKeys } from '../../shared/crypto/data-keys.ts';
import { loadInstallation } from '../../shared/crypto/installation.ts';
import { localKeyEncryption } from '../../shared/crypto/local-key.ts';
import { createAuditMetrics } from '../../shared/observability/audit-metrics.ts';
import { createHttpMetrics } from '../../shared/observability/http-metrics.ts';
import { createLogger } from '../../shared/observability/logger.ts';
import { createMetrics } from '../../shared/observability/metrics.ts';
import { createTokenMetrics } from '../../shared/observability/token-metrics.ts';
import { createPool } from '../../shared/postgres/pool.ts';
import { listen } from '../../shared/process/listen.ts';
import { runAsBenchProcess } from '../child-process.ts';
import { createSingleReader } from './single-reader.ts';

export interface SingleReadSettings {
  readonly databaseUrl: string;
  readonly databasePoolMax: number;
  /** Base64. */
  readonly kek: string;
}

async function begin({ databaseUrl, databasePoolMax, kek }: SingleReadSettings) {
  const log = createLogger('bench-peer', 'warn');
  const pool = createPool({
    connectionString: databaseUrl,
    max: databasePoolMax,
    applicationName: 'bench-peer',
    log,
  });
  const installation = await loadInstallation(pool, localKeyEncryption(Buffer.from(kek, 'base64')));
  const metrics = createMetrics({ version: 'bench' }, pool);
  const clock = createDatabaseClock();
  const applications = createApplicationCache({
    db: pool,
    source: postgresSource(pool, clock),
    pepper: installation.pepper,
    versionOf: async (id) => (await readConfigVersions(pool, [id]))[0]?.config_version ?? null,
    onRefresh: () => undefined,
    onWarmFailure: () => undefined,
  });
  const dataKeys = createDataKeys(pool, installation);
  const auditMetrics = createAuditMetrics(metrics);
  const audit = createAuditWriter({ pool, mode: 'batched', metrics: auditMetrics, log });
  const foundations = { pool, dataKeys, clock, applications, audit, log };
  const served = createServices(foundations, createTokenMetrics(metrics));
  const readers = { ...served.readers, whole: createSingleReader(pool) };
  const services = { ...served, readers };
  const { server } = createDataPlaneServer({
    services,
    // Nothing of the bench is relayed; port 9 is discard.
    relay: createRelay('http://127.0.0.1:9', installation.relaySecret),
    http: createHttpMetrics(metrics, 'data'),
    tls: undefined,
  });
  return { ready: { port: await listen(server, 0, '127.0.0.1') } };
}

runAsBenchProcess(begin);
