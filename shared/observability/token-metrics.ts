/** What the data plane counts besides requests. Labels are from closed sets. */
import { Counter, Histogram } from 'prom-client';
import { createIdempotencyCounter, type IdempotencyCounter } from './idempotency-metrics.ts';
import type { Metrics } from './metrics.ts';

const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128];

export interface TokenMetrics {
  operations: Counter<'operation'>;
  /** Rows of batched statements, `statement` is read, insert or stage. */
  batchRows: Histogram<'statement'>;
  /** Requests whose idempotency key was in use. */
  idempotent: IdempotencyCounter;
  /** `committed`, `rolled_back`; `expired` once the job process has swept them. */
  transactions: Counter<'outcome'>;
  /** Statements that asked for configuration versions alone. */
  gateReads: Counter;
  /** Entries brought to another configuration version, by outcome. */
  gateReloads: Counter<'outcome'>;
  redisLookups: Counter<'outcome'>;
  /** The alarm: a stored value was moved, re-labelled or forged. */
  sealsBroken: Counter;
  /** Generic tokens with what looks like a card verification code, which nothing deletes. */
  heldCvcs: Counter;
}

export function createTokenMetrics({ registry }: Pick<Metrics, 'registry'>): TokenMetrics {
  const registers = [registry];
  return {
    operations: new Counter({
      name: 'sallyport_token_operations_total',
      help: 'Token operations that were carried out; lists count the tokens shown',
      labelNames: ['operation'],
      registers,
    }),
    batchRows: new Histogram({
      name: 'sallyport_batch_rows',
      help: 'Rows of batched statements',
      labelNames: ['statement'],
      buckets: BATCH_BUCKETS,
      registers,
    }),
    idempotent: createIdempotencyCounter({ registry }),
    transactions: new Counter({
      name: 'sallyport_transactions_total',
      help: 'Transactions of the API that have ended, by how',
      labelNames: ['outcome'],
      registers,
    }),
    gateReads: new Counter({
      name: 'sallyport_gate_reads_total',
      help: 'Statements that asked for configuration versions alone',
      registers,
    }),
    gateReloads: new Counter({
      name: 'sallyport_gate_reloads_total',
      help: 'Cached applications and reactors brought to another configuration version',
      labelNames: ['outcome'],
      registers,
    }),
    redisLookups: new Counter({
      name: 'sallyport_redis_lookups_total',
      help: 'Configuration entries looked up in Redis',
      labelNames: ['outcome'],
      registers,
    }),
    heldCvcs: new Counter({
      name: 'sallyport_generic_tokens_with_cvc_total',
      help: 'Generic tokens stored with what looks like a card verification code: nothing deletes it',
      registers,
    }),
    sealsBroken: new Counter({
      name: 'sallyport_seals_broken_total',
      help: 'Stored values that did not open: moved, re-labelled or forged. Alarm on any',
      registers,
    }),
  };
}
