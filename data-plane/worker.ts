/** One worker's wiring: what it uses is made here, handed down, and ended in reverse order. */
import { readFile } from 'node:fs/promises';
import { createDatabaseClock } from '../shared/clock.ts';
import { createDataKeys } from '../shared/crypto/data-keys.ts';
import type { Installation } from '../shared/crypto/installation.ts';
import { createEgress, type Egress } from '../shared/egress/create-egress.ts';
import type { AddressRange } from '../shared/egress/ip-address.ts';
import { readCaFile } from '../shared/egress/trusted-tls.ts';
import { createHttpMetrics } from '../shared/observability/http-metrics.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { Metrics } from '../shared/observability/metrics.ts';
import { createProxyMetrics } from '../shared/observability/proxy-metrics.ts';
import type { ReactionMetrics } from '../shared/observability/reaction-metrics.ts';
import { createTokenMetrics } from '../shared/observability/token-metrics.ts';
import type { Pool } from '../shared/postgres/pool.ts';
import { listen } from '../shared/process/listen.ts';
import { createScriptFetch } from '../shared/sandbox/script-fetch.ts';
import { keepFolding } from '../shared/tokens/fold-counts.ts';
import { createConfigCache } from './config-cache/create-config-cache.ts';
import { createPools } from './proxy/pools.ts';
import type { Sandbox } from './reactors/sandbox.ts';
import { createScriptCalls } from './reactors/script-calls.ts';
import { createRelay } from './relay.ts';
import { createDataPlaneServer, type DataPlaneServer } from './server.ts';
import { createServices } from './services.ts';

export interface WorkerSettings {
  /** 0 takes any free port. */
  port: number;
  controlPlanePort: number;
  tlsCertFile: string | undefined;
  tlsKeyFile: string | undefined;
  redisUrl: string | undefined;
  /** The database past any pooler. */
  directUrl: string;
  egressAllow: readonly AddressRange[];
  egressCaFile: string | undefined;
  ephemeralProxy: boolean;
}

interface WorkerOptions {
  settings: WorkerSettings;
  pool: Pool;
  installation: Installation;
  metrics: Metrics;
  reactionMetrics: ReactionMetrics;
  /** The machine's; the worker does not end it. Absent: no reactors. */
  sandbox: Sandbox | undefined;
  log: Logger;
}

export interface Worker extends DataPlaneServer {
  /** Where it listens. */
  port: number;
  /** Ends what the worker made, once its server has closed. */
  close(): Promise<void>;
}

/** Settles when the worker listens. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { settings, pool, installation, metrics, reactionMetrics, sandbox, log } = options;
  const clock = createDatabaseClock();
  const dataKeys = createDataKeys(pool, installation);
  const tokenMetrics = createTokenMetrics(metrics);
  const config = createConfigCache({
    pool,
    directUrl: settings.directUrl,
    redisUrl: settings.redisUrl,
    installation,
    dataKeys,
    clock,
    metrics: tokenMetrics,
    log,
  });
  const { applications, reactors, proxies } = config;
  const egress = openEgress(settings, log);
  const scriptFetch = createScriptFetch({ egress });
  const pools = createPools(egress);
  const scriptCalls = createScriptCalls(log);
  const reactions = sandbox && {
    ...{ reactors, sandbox, scriptFetch, scriptCalls },
    metrics: reactionMetrics,
  };
  const proxying = {
    ...{ proxies, pools, egressAllow: settings.egressAllow, ephemeral: settings.ephemeralProxy },
    metrics: createProxyMetrics(metrics),
  };
  const foundations = { pool, dataKeys, clock, applications, proxying, log };
  const services = createServices(
    reactions === undefined ? foundations : { ...foundations, reactions },
    tokenMetrics,
  );
  const controlPlane = `http://127.0.0.1:${settings.controlPlanePort}`;
  const relay = createRelay(controlPlane, installation.relaySecret);
  const http = createHttpMetrics(metrics, 'data');
  const dataPlane = createDataPlaneServer({
    services,
    relay,
    http,
    tls: await readTls(settings),
  });
  const port = await listen(dataPlane.server, settings.port, undefined);

  // Until jobs have a process of their own, each worker offers to fold; one at a time does.
  const folding = new AbortController();
  const folded = keepFolding(pool, log, folding.signal);
  return {
    ...dataPlane,
    port,
    async close() {
      folding.abort();
      await folded;
      relay.close();
      await scriptFetch.close();
      await pools.close();
      await config.close();
    },
  };
}

/** Everything that goes out of this worker goes through its guard. */
function openEgress({ egressAllow, egressCaFile }: WorkerSettings, log: Logger): Egress {
  const extraCa = egressCaFile === undefined ? [] : readCaFile(egressCaFile);
  return createEgress({ allow: egressAllow, extraCa, log });
}

async function readTls({
  tlsCertFile,
  tlsKeyFile,
}: WorkerSettings): Promise<{ cert: string; key: string } | undefined> {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined;
  return { cert: await readFile(tlsCertFile, 'utf8'), key: await readFile(tlsKeyFile, 'utf8') };
}
