/** What the routes of one worker work with. Built once, handed down as a parameter. */
import type { AuditWriter } from '../shared/audit/write-audit.ts';
import type { DatabaseClock } from '../shared/clock.ts';
import type { DataKeys } from '../shared/crypto/data-keys.ts';
import type { AddressRange } from '../shared/egress/ip-address.ts';
import { createRecordReader, type RecordReader } from '../shared/idempotency/record-store.ts';
import type { NotDone } from '../shared/idempotency/run-once.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { ProxyMetrics } from '../shared/observability/proxy-metrics.ts';
import type { ReactionMetrics } from '../shared/observability/reaction-metrics.ts';
import type { TokenMetrics } from '../shared/observability/token-metrics.ts';
import type { Pool } from '../shared/postgres/pool.ts';
import type { ScriptFetch } from '../shared/sandbox/script-fetch.ts';
import { createTokenReaders, type TokenReaders } from '../shared/tokens/batch-reader.ts';
import type { TellMade } from '../shared/tokens/detokenize.ts';
import { createTokenOpener, type TokenOpener } from '../shared/tokens/reveal.ts';
import { createTokenWriter, type TokenWriter } from '../shared/tokens/token-writer.ts';
import {
  createTransactionOpener,
  type TransactionOpener,
} from '../shared/transactions/open-transactions.ts';
import { createStagingWriter, type StagingWriter } from '../shared/transactions/stage-creates.ts';
import type { Ending } from '../shared/transactions/transaction-store.ts';
import type { ApplicationCache } from './config-cache/application-cache.ts';
import type { ProxyCache } from './config-cache/proxy-cache.ts';
import type { ReactorCache } from './config-cache/reactor-cache.ts';
import { PageRoom } from './page-room.ts';
import type { DestinationPools } from './proxy/pools.ts';
import type { ProxyLog } from './proxy/proxy-log.ts';
import type { AnswerRoom } from './reactors/answer-room.ts';
import type { QueueRoom } from './reactors/queue-room.ts';
import type { ReactionQueue } from './reactors/reaction-queue.ts';
import type { Sandbox } from './reactors/sandbox.ts';
import type { ScriptCalls } from './reactors/script-calls.ts';
import { createVersionGate, type VersionGate } from './version-gate.ts';

export type TokenOperation =
  | 'create'
  | 'deduplicate'
  | 'read'
  | 'list'
  | 'search'
  | 'detokenize'
  | 'update'
  | 'delete';

export type TransactionOutcome = Ending | 'expired';

export interface Services {
  readonly pool: Pool;
  readonly readers: TokenReaders;
  readonly writer: TokenWriter;
  readonly opening: TransactionOpener;
  /** For creates in transactions. */
  readonly staging: StagingWriter;
  readonly opener: TokenOpener;
  readonly dataKeys: DataKeys;
  readonly clock: DatabaseClock;
  readonly gate: VersionGate;
  /** What requests with an idempotency key were answered. */
  readonly records: RecordReader;
  readonly pageRoom: Pick<PageRoom, 'enter'>;
  readonly applications: ApplicationCache;
  /** The trail of accesses; changes write theirs in their own transactions. */
  readonly audit: AuditWriter;
  /** Absent in a data plane without a sandbox. */
  readonly reactions?: ReactionServices;
  /** Absent where nothing is forwarded. */
  readonly proxying?: ProxyServices;
  /**
   * Told what expressions yield in a run that a request transform is or waits for; absent everywhere else,
   * and where no tripwire looks for it.
   */
  readonly madeInRun?: TellMade;
  readonly log: Logger;
  /** Counts finished token operations. */
  countTokens(operation: TokenOperation, count: number): void;
  /** Counts requests whose idempotency key was in use. */
  countNotDone(why: NotDone): void;
  /** Counts transactions that have ended. */
  countTransactions(outcome: TransactionOutcome, count: number): void;
  /** Counts generic tokens that hold what looks like a card verification code. */
  countHeldCvc(): void;
}

/** What it takes to run reactors. */
export interface ReactionServices {
  readonly reactors: ReactorCache;
  readonly sandbox: Pick<Sandbox, 'run' | 'reuse'>;
  /** What scripts may call out for. */
  readonly scriptFetch: Pick<ScriptFetch, 'fetchFor'>;
  readonly scriptCalls: ScriptCalls;
  /** Where reactions wait that are to be run later. */
  readonly queue: ReactionQueue;
  readonly queueRoom: Pick<QueueRoom, 'require' | 'requireForResult'>;
  readonly answerRoom: Pick<AnswerRoom, 'require' | 'add'>;
  /** SALLYPORT_EGRESS_ALLOW: what a callback may go to besides public hosts. */
  readonly egressAllow: readonly AddressRange[];
  readonly metrics: Pick<ReactionMetrics, 'reactions' | 'duration' | 'inFlight'>;
}

/** What it takes to forward requests. */
export interface ProxyServices {
  readonly proxies: ProxyCache;
  readonly pools: DestinationPools;
  /** SALLYPORT_EGRESS_ALLOW: what BT-PROXY-URL may name besides public hosts. */
  readonly egressAllow: readonly AddressRange[];
  /** SALLYPORT_EPHEMERAL_PROXY: whether BT-PROXY-URL is served. */
  readonly ephemeral: boolean;
  readonly metrics: ProxyMetrics;
  readonly log: ProxyLog;
}

export interface ProxyingServices extends Services {
  readonly proxying: ProxyServices;
}

export interface ReactingServices extends Services {
  readonly reactions: ReactionServices;
}

type Foundations = Pick<
  Services,
  'pool' | 'dataKeys' | 'clock' | 'applications' | 'audit' | 'reactions' | 'proxying' | 'log'
>;

export function createServices(foundations: Foundations, metrics: TokenMetrics): Services {
  const { pool, dataKeys } = foundations;
  const reads = metrics.batchRows.labels({ statement: 'read' });
  const inserts = metrics.batchRows.labels({ statement: 'insert' });
  const stages = metrics.batchRows.labels({ statement: 'stage' });
  return {
    ...foundations,
    readers: createTokenReaders(pool, (rows) => reads.observe(rows)),
    writer: createTokenWriter(pool, (rows) => inserts.observe(rows)),
    opening: createTransactionOpener(pool),
    staging: createStagingWriter(pool, (rows) => stages.observe(rows)),
    opener: createTokenOpener(dataKeys, () => metrics.sealsBroken.inc()),
    records: createRecordReader(pool),
    pageRoom: new PageRoom(),
    gate: createVersionGate(pool, () => metrics.gateReads.inc()),
    countTokens: (operation, count) => metrics.operations.inc({ operation }, count),
    countNotDone: (outcome) => metrics.idempotent.inc({ outcome }),
    countTransactions: (outcome, count) => metrics.transactions.inc({ outcome }, count),
    countHeldCvc: () => metrics.heldCvcs.inc(),
  };
}
