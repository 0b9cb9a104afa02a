/** What the routes of one worker work with. Built once, handed down as a parameter. */
import type { DatabaseClock } from '../shared/clock.ts';
import type { DataKeys } from '../shared/crypto/data-keys.ts';
import type { Logger } from '../shared/observability/logger.ts';
import type { TokenMetrics } from '../shared/observability/token-metrics.ts';
import type { Pool } from '../shared/postgres/pool.ts';
import { type BatchReader, createBatchReader } from '../shared/tokens/batch-reader.ts';
import { createTokenOpener, type TokenOpener } from '../shared/tokens/reveal.ts';
import { createTokenWriter, type TokenWriter } from '../shared/tokens/token-writer.ts';
import type { ApplicationCache } from './config-cache/application-cache.ts';
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

export interface Services {
  readonly pool: Pool;
  readonly reader: BatchReader;
  readonly writer: TokenWriter;
  readonly opener: TokenOpener;
  readonly dataKeys: DataKeys;
  readonly clock: DatabaseClock;
  readonly gate: VersionGate;
  readonly applications: ApplicationCache;
  readonly log: Logger;
  /** Counts finished token operations. */
  countTokens(operation: TokenOperation, count: number): void;
  /** Counts generic tokens that hold what looks like a card verification code. */
  countHeldCvc(): void;
}

type Foundations = Pick<Services, 'pool' | 'dataKeys' | 'clock' | 'applications' | 'log'>;

export function createServices(foundations: Foundations, metrics: TokenMetrics): Services {
  const { pool, dataKeys } = foundations;
  const reads = metrics.batchRows.labels({ statement: 'read' });
  const inserts = metrics.batchRows.labels({ statement: 'insert' });
  return {
    ...foundations,
    reader: createBatchReader(pool, (rows) => reads.observe(rows)),
    writer: createTokenWriter(pool, (rows) => inserts.observe(rows)),
    opener: createTokenOpener(dataKeys, () => metrics.sealsBroken.inc()),
    gate: createVersionGate(pool, () => metrics.gateReads.inc()),
    countTokens: (operation, count) => metrics.operations.inc({ operation }, count),
    countHeldCvc: () => metrics.heldCvcs.inc(),
  };
}
