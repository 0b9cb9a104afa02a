/**
 * Records of idempotency keys in Postgres. The primary key is the guard: an effect and its record
 * commit together, and a second record of a key cannot commit. The advisory lock only turns the
 * wait for a twin into a 409; it ends with its transaction, also in a crash.
 */

import { type Batcher, createBatcher } from '../postgres/batcher.ts';
import { isDatabaseUnavailable, retryRead } from '../postgres/database-error.ts';
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';
import { IS_OVER } from '../sweeps/erase-due.ts';
import { type IdempotencyClaim, inProgress } from './claim.ts';
import { type KeptAnswer, sealAnswer } from './kept-answer.ts';

/** How long an answer is replayed (spec: Limits). */
const RECORD_LIFETIME = "interval '24 hours'";

/** Too old to count, or left behind by somebody who died at work. Of alias `i`. */
export const DEAD_RECORD = `(i.created_at <= clock_now() - ${RECORD_LIFETIME}
  OR (i.sealed IS NULL AND i.leased_until <= clock_now()))`;

export type ScopeKey = Pick<IdempotencyClaim, 'tenant_id' | 'scope'>;

/** A row of `idempotency_records`. */
export interface FoundRecord {
  /** `null`: somebody is at work on it, unless it is dead, or it is too large for the statement. */
  readonly sealed: Buffer | null;
  readonly is_too_large: boolean;
  readonly effect_at_ms: number | null;
  /** From when on the answer is not shown, if that is before its day is over. */
  readonly due_at_ms: number | null;
  /** It was carried out, and its answer is due. */
  readonly is_over: boolean;
  /** Does not count any more. */
  readonly dead: boolean;
}

export interface RecordRead {
  readonly record: FoundRecord | undefined;
  /** `null` when the tenant no longer exists. */
  readonly config_version: string | null;
  readonly now_ms: number;
}

export type RecordReader = Batcher<ScopeKey, RecordRead>;

/** Thrown when the key has a record by now: what was done is rolled back, and the record answered. */
export class AnsweredMeanwhileError extends Error {
  constructor() {
    super('the idempotency key has a record');
    this.name = 'AnsweredMeanwhileError';
  }
}

const PRIMARY_KEY = 'idempotency_records_pkey';

/** Whether something failed because the key has a record already. */
export function isAnsweredMeanwhile(error: unknown): boolean {
  if (error instanceof AnsweredMeanwhileError) return true;
  return (error as { constraint?: unknown } | null)?.constraint === PRIMARY_KEY;
}

/** The advisory lock of a scope: its first 64 bits, which only the tenant's key makes. */
export const scopeLock = (scope: Buffer): string => scope.readBigInt64BE(0).toString();

/** Holds the key until the caller's transaction ends. Throws 409 when somebody else does. */
export async function holdKey(client: Queryable, { scope }: ScopeKey): Promise<void> {
  const { rows } = await client.query<{ held: boolean }>({
    name: 'hold-idempotency-key',
    text: 'SELECT pg_try_advisory_xact_lock($1::int8) AS held',
    values: [scopeLock(scope)],
  });
  if (rows[0]?.held !== true) throw inProgress();
}

/**
 * Keeps the answer, in the transaction of its effect. A plain INSERT: when the key has a record the
 * transaction dies by it (`isAnsweredMeanwhile`), and the effect with it.
 */
export async function insertRecord(
  client: Queryable,
  claim: IdempotencyClaim,
  answer: KeptAnswer,
): Promise<void> {
  await client.query({
    name: 'insert-idempotency-record',
    text: 'INSERT INTO idempotency_records (tenant_id, scope, sealed) VALUES ($1, $2, $3)',
    values: [claim.tenant_id, claim.scope, sealAnswer(claim, answer)],
  });
}

/** Makes a key new again whose record does not count any more. */
export async function deleteDeadRecord(
  db: Queryable,
  { tenant_id, scope }: ScopeKey,
): Promise<void> {
  await db.query({
    name: 'delete-dead-idempotency-record',
    text: `DELETE FROM idempotency_records i
           WHERE tenant_id = $1 AND scope = $2 AND ${DEAD_RECORD}`,
    values: [tenant_id, scope],
  });
}

/** `LATERAL … LIMIT 1`: one probe of the primary key per row, whatever the planner believes. */
export const READ_RECORDS = {
  name: 'read-idempotency-records',
  text: `
    SELECT q.n::int4 AS n, tn.config_version, ${milliseconds('clock_now()')} AS now_ms, r.*
    FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY AS q (tenant_id, scope, n)
    LEFT JOIN LATERAL (
      SELECT config_version FROM tenants WHERE tenants.id = q.tenant_id LIMIT 1
    ) tn ON true
    LEFT JOIN LATERAL (
      SELECT true AS found, CASE WHEN octet_length(sealed) <= $3 THEN sealed END AS sealed,
        coalesce(octet_length(sealed) > $3, false) AS is_too_large,
        ${milliseconds('effect_at')} AS effect_at_ms, ${milliseconds('due_at')} AS due_at_ms,
        ${IS_OVER} AS is_over, ${DEAD_RECORD} AS dead
      FROM idempotency_records i WHERE i.tenant_id = q.tenant_id AND i.scope = q.scope LIMIT 1
    ) r ON true`,
};

type ReadRow = Omit<RecordRead, 'record'> & FoundRecord & { n: number; found: true | null };

/** More than any that is kept. */
const ANY_BYTES = 2 ** 31 - 1;
/** Of answers that are read with others': a reaction may have answered megabytes. */
const SHARED_BYTES_MAX = 32 * 1024;

/** One result per key, in their order, with version and time as a token read brings them. */
export async function readRecords(
  db: Queryable,
  keys: ScopeKey[],
  bytesMax = ANY_BYTES,
): Promise<RecordRead[]> {
  const { rows } = await db.query<ReadRow>({
    ...READ_RECORDS,
    values: [keys.map((key) => key.tenant_id), keys.map((key) => key.scope), bytesMax],
  });
  const results = new Array<RecordRead>(keys.length);
  for (const { n, found, config_version, now_ms, ...record } of rows) {
    results[n - 1] = { record: found === null ? undefined : record, config_version, now_ms };
  }
  return results;
}

/** Large answers are read alone, two at a time, so that nobody's small one waits for them. */
export function createRecordReader(db: Queryable): RecordReader {
  const shared: RecordReader = createBatcher({
    run: (keys) => retryRead(() => readRecords(db, keys, SHARED_BYTES_MAX)),
    isOutage: isDatabaseUnavailable,
  });
  const alone: RecordReader = createBatcher({
    run: (keys) => retryRead(() => readRecords(db, keys)),
    identity: () => '',
    isOutage: isDatabaseUnavailable,
  });
  return {
    async submit(key) {
      const found = await shared.submit(key);
      return found.record?.is_too_large === true ? alone.submit(key) : found;
    },
  };
}
