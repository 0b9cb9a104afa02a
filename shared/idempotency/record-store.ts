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
import {
  DETAIL_COLUMNS,
  NO_CVC_COLUMNS,
  sealedColumns,
  type TokenRow,
  type TokenValues,
  tokenRowOf,
} from '../tokens/token-row.ts';
import { type IdempotencyClaim, inProgress } from './claim.ts';
import { type KeptAnswer, sealAnswer } from './kept-answer.ts';

/** How long an answer is replayed (spec: Limits). */
const RECORD_LIFETIME = "interval '24 hours'";

/** Too old to count, or left behind by somebody who died at work. Of alias `i`. */
export const DEAD_RECORD = `(i.created_at <= clock_now() - ${RECORD_LIFETIME}
  OR (i.sealed IS NULL AND i.leased_until <= clock_now()) IS TRUE)`;

export type ScopeKey = Pick<IdempotencyClaim, 'tenant_id' | 'scope'>;

/**
 * A row of `idempotency_records`: it holds the answer, or names the token whose creation is the answer.
 * One that does neither is somebody's at work, unless it is dead, or too large for the statement.
 */
export interface FoundRecord {
  readonly sealed: Buffer | null;
  readonly named: FoundToken | undefined;
  readonly is_too_large: boolean;
  readonly effect_at_ms: number | null;
  /** From when on the answer is not shown, if that is before its day is over. */
  readonly due_at_ms: number | null;
  /** It was carried out, and its answer is due. */
  readonly is_over: boolean;
  /** Does not count any more. */
  readonly dead: boolean;
}

/** What a record names. */
export interface FoundToken {
  /** As it was created; `undefined` when the record names what is not there, which is never so. */
  readonly token: TokenRow | undefined;
  /** Whether its creator was shown its mask. */
  readonly shows_mask: boolean;
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

/** Tries the advisory lock of a scope, which only the tenant's key makes. */
export const tryScope = (scope: string): string =>
  `pg_try_advisory_xact_lock(uuid_hash_extended(${scope}, 0))`;

/** Holds the key until the caller's transaction ends. Throws 409 when somebody else does. */
export async function holdKey(client: Queryable, { scope }: ScopeKey): Promise<void> {
  const { rows } = await client.query<{ held: boolean }>({
    name: 'hold-idempotency-key',
    text: `SELECT ${tryScope('$1::uuid')} AS held`,
    values: [scope],
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

/**
 * `LATERAL … LIMIT 1`: one probe of the primary key per row, whatever the planner believes. A record and
 * the token that it names are of one snapshot: a change of the token ends the naming as it commits.
 */
export const READ_RECORDS = {
  name: 'read-idempotency-records',
  text: `
    SELECT q.n::int4, tn.config_version, ${milliseconds('clock_now()')}, r.*, t.*
    FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS q (tenant_id, scope, n)
    LEFT JOIN LATERAL (
      SELECT config_version FROM tenants WHERE tenants.id = q.tenant_id LIMIT 1
    ) tn ON true
    LEFT JOIN LATERAL (
      SELECT true AS found, CASE WHEN octet_length(sealed) <= $3 THEN sealed END AS sealed,
        (octet_length(sealed) > $3) IS TRUE AS is_too_large,
        ${milliseconds('effect_at')} AS effect_at_ms, ${milliseconds('due_at')} AS due_at_ms,
        ${IS_OVER} AS is_over, ${DEAD_RECORD} AS dead, i.shows_mask, i.token_id
      FROM idempotency_records i WHERE i.tenant_id = q.tenant_id AND i.scope = q.scope LIMIT 1
    ) r ON true
    LEFT JOIN LATERAL (
      SELECT ${sealedColumns('t.sealed')}, ${NO_CVC_COLUMNS}, ${DETAIL_COLUMNS} FROM tokens t
      WHERE t.tenant_id = q.tenant_id AND t.id = r.token_id AND t.record_scope = q.scope LIMIT 1
    ) t ON true`,
};

/** A row as `rowMode: 'array'` gives it, in the order of the columns above. */
type ReadValues = [
  n: number,
  config_version: string | null,
  now_ms: number,
  found: true | null,
  sealed: Buffer | null,
  is_too_large: boolean,
  effect_at_ms: number | null,
  due_at_ms: number | null,
  is_over: boolean,
  dead: boolean,
  shows_mask: boolean | null,
  token_id: string | null,
  ...token: TokenValues,
];

function recordOf([, , , found, sealed, ...rest]: ReadValues): FoundRecord | undefined {
  if (found === null) return undefined;
  const [is_too_large, effect_at_ms, due_at_ms, is_over, dead, shows_mask, token_id, ...values] =
    rest;
  const named =
    token_id === null
      ? undefined
      : { token: tokenRowOf(token_id, values) ?? undefined, shows_mask: shows_mask === true };
  return { sealed, named, is_too_large, effect_at_ms, due_at_ms, is_over, dead };
}

/** More than any that is kept. */
const ANY_BYTES = 2 ** 31 - 1;
/** Of answers that are read with others': a reaction may have answered megabytes. */
export const SHARED_BYTES_MAX = 32 * 1024;

/** One result per key, in their order, with version and time as a token read brings them. */
export async function readRecords(
  db: Queryable,
  keys: ScopeKey[],
  bytesMax = ANY_BYTES,
): Promise<RecordRead[]> {
  const { rows } = await db.query<ReadValues>({
    ...READ_RECORDS,
    values: [keys.map((key) => key.tenant_id), keys.map((key) => key.scope), bytesMax],
    rowMode: 'array',
  });
  const results = new Array<RecordRead>(keys.length);
  for (const row of rows) {
    const [n, config_version, now_ms] = row;
    results[n - 1] = { record: recordOf(row), config_version, now_ms };
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
