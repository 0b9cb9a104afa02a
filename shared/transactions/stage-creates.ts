/**
 * Stages new tokens in open transactions, concurrent creates in one statement, as token-writer.ts
 * stores them: for each row the configuration version, the transaction and the id are judged and the
 * row written in one snapshot. Their ids are held, so that nobody else takes them, nor waits for a commit
 * to find them taken: an assigned id is known to whoever was answered it.
 */
import type { Batcher } from '../postgres/batcher.ts';
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';
import { CVC_LIFETIME_MS } from '../tokens/seal-cvc.ts';
import { NOT_EXPIRED } from '../tokens/token-row.ts';
import {
  CLOCK_TOLERANCE_MS,
  createInsertBatcher,
  type InsertProblem,
  type InsertResult,
  type TokenInsert,
} from '../tokens/token-writer.ts';
import {
  TRANSACTION_BYTES_MAX,
  TRANSACTION_TOKENS_MAX,
  type TransactionProblem,
} from './transaction-store.ts';

export interface StagedCreate extends TokenInsert {
  transaction_id: string;
}

/** `locked`: the id is held by another transaction, or was until now. */
export type StageProblem = InsertProblem | TransactionProblem | 'locked';

export type StageResult = Omit<InsertResult, 'problem'> & { problem: StageProblem | null };

export type StagingWriter = Batcher<StagedCreate, StageResult>;

const INPUT = `
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::text[], $10::bytea[], $11::float8[], $12::uuid[], $13::bytea[],
    $14::float8[], $15::uuid[], $16::bool[], $17::text[]) WITH ORDINALITY AS i (tenant_id,
    config_version, id, type, container, metadata, search_indexes, fingerprint,
    fingerprint_expression, sealed, expires_at_ms, created_by, cvc_sealed, cvc_due_at_ms,
    transaction_id, chosen, terms, n)`;

const OWN_TIME_MS = milliseconds('clock_now()');

/** What each transaction of the batch is and holds already; nobody ends it meanwhile. */
const TRANSACTIONS = `
  SELECT w.tenant_id, w.transaction_id, k.created_by,
    h.state = 'open' AND h.expires_at > clock_now() AS is_open, u.tokens, u.bytes
  FROM (SELECT DISTINCT tenant_id, transaction_id FROM input) w
  CROSS JOIN LATERAL (
    SELECT created_by FROM transactions t
    WHERE t.tenant_id = w.tenant_id AND t.id = w.transaction_id LIMIT 1
  ) k
  LEFT JOIN LATERAL (
    SELECT state, expires_at FROM transactions t
    WHERE t.tenant_id = w.tenant_id AND t.id = w.transaction_id LIMIT 1 FOR SHARE SKIP LOCKED
  ) h ON true
  CROSS JOIN LATERAL (
    SELECT count(*) AS tokens, coalesce(sum(octet_length(s.sealed)), 0) AS bytes
    FROM staged_tokens s
    WHERE s.tenant_id = w.tenant_id AND s.transaction_id = w.transaction_id
  ) u`;

/**
 * A chosen id is taken when a live token has it which this transaction does not delete. All is looked
 * up by key for each row: `EXISTS` could be planned as a walk.
 */
const GATE = `
  SELECT i.n, t.config_version, l.transaction_id IS NULL AS to_lock, CASE
    WHEN t.id IS NULL OR t.config_version <> i.config_version THEN 'stale'
    WHEN h.created_by IS NULL OR h.created_by <> i.created_by THEN 'unknown'
    WHEN h.is_open IS NOT TRUE THEN 'ended'
    WHEN h.tokens + row_number() OVER own > ${TRANSACTION_TOKENS_MAX}
      OR h.bytes + sum(octet_length(i.sealed)) OVER own > ${TRANSACTION_BYTES_MAX} THEN 'full'
    WHEN i.expires_at_ms <= ${OWN_TIME_MS} THEN 'past'
    WHEN abs(i.cvc_due_at_ms - ${CVC_LIFETIME_MS} - ${OWN_TIME_MS}) > ${CLOCK_TOLERANCE_MS}
      THEN 'clock'
    WHEN l.transaction_id <> i.transaction_id THEN 'locked'
    WHEN i.chosen AND (
      SELECT true FROM tokens t
      WHERE t.tenant_id = i.tenant_id AND t.id = i.id AND ${NOT_EXPIRED} LIMIT 1
    ) AND (
      SELECT s.operation FROM staged_tokens s
      WHERE s.tenant_id = i.tenant_id AND s.transaction_id = i.transaction_id AND s.id = i.id
    ) IS DISTINCT FROM 'delete' THEN 'conflict'
  END AS problem
  FROM input i LEFT JOIN tenants t ON t.id = i.tenant_id
  LEFT JOIN held h ON h.tenant_id = i.tenant_id AND h.transaction_id = i.transaction_id
  LEFT JOIN LATERAL (
    SELECT transaction_id FROM token_locks
    WHERE i.chosen AND tenant_id = i.tenant_id AND token_id = i.id LIMIT 1
  ) l ON true
  WINDOW own AS (PARTITION BY i.tenant_id, i.transaction_id ORDER BY i.n)`;

/** The columns of a new token, over what may be left of a deleted one: that becomes a replacement. */
const OVER_DELETED = [
  ...['type', 'container', 'metadata', 'search_indexes', 'fingerprint', 'fingerprint_expression'],
  ...['sealed', 'terms', 'expires_at', 'created_by', 'created_at', 'modified_by', 'modified_at'],
  'created_container',
]
  .map((column) => `${column} = excluded.${column}`)
  .join(', ');

/** `MATERIALIZED` as in `INSERT_TOKENS`. Locks come first: who does not get the id stages nothing. */
export const STAGE_CREATES = {
  name: 'stage-creates',
  text: `
    WITH input AS MATERIALIZED (${INPUT}),
    held AS MATERIALIZED (${TRANSACTIONS}),
    gate AS MATERIALIZED (${GATE}),
    locks AS (
      INSERT INTO token_locks (tenant_id, token_id, transaction_id)
      SELECT i.tenant_id, i.id, i.transaction_id
      FROM input i JOIN gate g ON g.n = i.n AND g.problem IS NULL AND g.to_lock
      ORDER BY i.tenant_id, i.id
      ON CONFLICT DO NOTHING
      RETURNING tenant_id, token_id
    ),
    allowed AS MATERIALIZED (
      SELECT i.* FROM input i JOIN gate g ON g.n = i.n AND g.problem IS NULL
      LEFT JOIN locks l ON l.tenant_id = i.tenant_id AND l.token_id = i.id
      WHERE NOT g.to_lock OR l.token_id IS NOT NULL
    ),
    staged AS (
      INSERT INTO staged_tokens AS s (tenant_id, transaction_id, id, operation, type, container,
        metadata, search_indexes, fingerprint, fingerprint_expression, sealed, terms, expires_at,
        created_by, created_at, created_container)
      SELECT i.tenant_id, i.transaction_id, i.id, 'create', i.type, i.container, i.metadata::json,
        i.search_indexes::json, i.fingerprint, i.fingerprint_expression, i.sealed,
        i.terms::bytea[], to_timestamp(i.expires_at_ms / 1000), i.created_by,
        date_trunc('milliseconds', clock_now()), i.container
      FROM allowed i
      ON CONFLICT (tenant_id, transaction_id, id)
        DO UPDATE SET operation = 'replace', ${OVER_DELETED} WHERE s.operation = 'delete'
      RETURNING tenant_id, transaction_id, id, created_at
    ),
    cvcs AS (
      INSERT INTO staged_cvcs (tenant_id, transaction_id, token_id, sealed, due_at)
      SELECT i.tenant_id, i.transaction_id, i.id, i.cvc_sealed,
        to_timestamp(i.cvc_due_at_ms / 1000)
      FROM allowed i JOIN staged t ON t.tenant_id = i.tenant_id
        AND t.transaction_id = i.transaction_id AND t.id = i.id
      WHERE i.cvc_sealed IS NOT NULL
      ON CONFLICT (tenant_id, transaction_id, token_id)
        DO UPDATE SET sealed = excluded.sealed, due_at = excluded.due_at
    )
    SELECT i.n::int4 AS n, g.config_version, ${milliseconds('t.created_at')} AS created_at_ms,
      ${OWN_TIME_MS} AS now_ms, coalesce(g.problem, CASE
        WHEN a.n IS NULL THEN 'locked'
        WHEN t.id IS NULL THEN 'conflict'
      END) AS problem
    FROM input i JOIN gate g ON g.n = i.n LEFT JOIN allowed a ON a.n = i.n
    LEFT JOIN staged t ON t.tenant_id = i.tenant_id AND t.transaction_id = i.transaction_id
      AND t.id = i.id`,
};

/** As the text of a `bytea[]`: an array of arrays cannot be a parameter of rows. */
export const termsText = (terms: readonly Buffer[]): string =>
  `{${terms.map((hash) => `"\\\\x${hash.toString('hex')}"`).join(',')}}`;

/** The statement's parameters, one array per column. */
function stageValues(creates: readonly StagedCreate[]): unknown[] {
  const columns: unknown[][] = Array.from({ length: 17 }, () => []);
  for (const { token, cvc, ...create } of creates) {
    [
      ...[create.tenant_id, create.config_version, token.id, token.type, token.container],
      ...[token.metadata, token.search_indexes, token.fingerprint, token.fingerprint_expression],
      ...[token.sealed, token.expires_at_ms, create.created_by, cvc?.sealed ?? null],
      ...[
        cvc?.due_at_ms ?? null,
        create.transaction_id,
        create.chosen ?? true,
        termsText(token.terms),
      ],
    ].forEach((value, column) => {
      columns[column]?.push(value);
    });
  }
  return columns;
}

/** Stages in one statement. Two of one call must not have the same tenant and id. */
export async function stageCreates(
  db: Queryable,
  creates: readonly StagedCreate[],
): Promise<StageResult[]> {
  const { rows } = await db.query<StageResult & { n: number }>({
    ...STAGE_CREATES,
    values: stageValues(creates),
  });
  const results = new Array<StageResult>(creates.length);
  for (const { n, ...result } of rows) results[n - 1] = result;
  return results;
}

export function createStagingWriter(
  db: Queryable,
  onBatch?: (rows: number) => void,
): StagingWriter {
  return createInsertBatcher<StagedCreate, StageResult>(
    (creates) => stageCreates(db, creates),
    onBatch,
  );
}
