/**
 * Makes what routes and jobs work with, from one process's connections: a worker's, or the job
 * process's, which serves no requests. What is made here is ended here, in reverse order.
 */
import { type AuditMode, createAuditWriter } from '../shared/audit/write-audit.ts';
import { createDatabaseClock } from '../shared/clock.ts';
import { createDataKeys } from '../shared/crypto/data-keys.ts';
import type { Installation } from '../shared/crypto/installation.ts';
import { createEgress, type Egress } from '../shared/egress/create-egress.ts';
import type { AddressRange } from '../shared/egress/ip-address.ts';
import { createRefusalLog } from '../shared/egress/refusal-log.ts';
import { readCaFile } from '../shared/egress/trusted-tls.ts';
import { createAuditMetrics } from '../shared/observability/audit-metrics.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { Metrics } from '../shared/observability/metrics.ts';
import { createProxyMetrics } from '../shared/observability/proxy-metrics.ts';
import type { ReactionMetrics } from '../shared/observability/reaction-metrics.ts';
import { createTokenMetrics } from '../shared/observability/token-metrics.ts';
import type { Pool } from '../shared/postgres/pool.ts';
import { createScriptFetch } from '../shared/sandbox/script-fetch.ts';
import { createConfigCache } from './config-cache/create-config-cache.ts';
import { createPools } from './proxy/pools.ts';
import { createProxyLog } from './proxy/proxy-log.ts';
import { AnswerRoom } from './reactors/answer-room.ts';
import { QueueRoom } from './reactors/queue-room.ts';
import { createReactionQueue } from './reactors/reaction-queue.ts';
import type { Sandbox } from './reactors/sandbox.ts';
import { createScriptCalls } from './reactors/script-calls.ts';
import { createServices, type Services } from './services.ts';

export interface ServiceSettings {
  redisUrl: string | undefined;
  /** The database past any pooler. */
  directUrl: string;
  egressAllow: readonly AddressRange[];
  egressCaFile: string | undefined;
  ephemeralProxy: boolean;
  audit: AuditMode;
}

export interface ServiceOptions {
  settings: ServiceSettings;
  pool: Pool;
  installation: Installation;
  metrics: Metrics;
  reactionMetrics: ReactionMetrics;
  /** Ended by who started it. Absent: no reactors. */
  sandbox: Pick<Sandbox, 'run' | 'reuse'> | undefined;
  log: Logger;
}

export interface OpenServices {
  readonly services: Services;
  /** Everything that goes out of this process goes through its guard. */
  readonly egress: Egress;
  close(): Promise<void>;
}

export function openServices(options: ServiceOptions): OpenServices {
  const { settings, pool, installation, metrics, reactionMetrics, sandbox, log } = options;
  const clock = createDatabaseClock();
  const dataKeys = createDataKeys(pool, installation);
  const tokenMetrics = createTokenMetrics(metrics);
  const config = createConfigCache({
    ...{ pool, directUrl: settings.directUrl, redisUrl: settings.redisUrl },
    ...{ installation, dataKeys, clock, metrics: tokenMetrics, log },
  });
  const { applications, reactors, proxies } = config;
  const egress = openEgress(settings, log);
  const scriptFetch = createScriptFetch({ egress });
  const pools = createPools(egress);
  const scriptCalls = createScriptCalls(log);
  const reactions = sandbox && {
    ...{ reactors, sandbox, scriptFetch, scriptCalls },
    ...{ queue: createReactionQueue(pool), queueRoom: new QueueRoom(pool) },
    answerRoom: new AnswerRoom(),
    egressAllow: settings.egressAllow,
    metrics: reactionMetrics,
  };
  const proxying = {
    ...{ proxies, pools, egressAllow: settings.egressAllow, ephemeral: settings.ephemeralProxy },
    metrics: createProxyMetrics(metrics),
    log: createProxyLog(log),
  };
  const auditMetrics = createAuditMetrics(metrics);
  const audit = createAuditWriter({ pool, mode: settings.audit, metrics: auditMetrics, log });
  const foundations = { pool, dataKeys, clock, applications, audit, proxying, log };
  return {
    services: createServices(
      reactions === undefined ? foundations : { ...foundations, reactions },
      tokenMetrics,
    ),
    egress,
    async close() {
      await audit.close();
      await scriptFetch.close();
      await pools.close();
      await config.close();
    },
  };
}

function openEgress({ egressAllow, egressCaFile }: ServiceSettings, log: Logger): Egress {
  const extraCa = egressCaFile === undefined ? [] : readCaFile(egressCaFile);
  return createEgress({ allow: egressAllow, extraCa, onRefused: createRefusalLog(log) });
}
