/**
 * Stores new tokens, concurrent creates in one statement. The statement carries the configuration
 * version each decision was made at, and writes nothing for a row whose version is no longer the
 * tenant's: a revoked key creates nothing (design section 5).
 */
import type { Via } from '../audit/audit-entry.ts';
import { POSITION } from '../audit/insert-audit-rows.ts';
import {
  type Batcher,
  type BatcherOptions,
  createBatcher,
  createGroupedBatcher,
} from '../postgres/batcher.ts';
import {
  isCrossed,
  isDatabaseUnavailable,
  isHeldUp,
  isRowError,
} from '../postgres/database-error.ts';
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';
import { type InsertRecord, RECORD_PARTS, recordValues } from './insert-records.ts';
import { CVC_LIFETIME_MS, type SealedCvc } from './seal-cvc.ts';
import type { EncodedToken } from './token-draft.ts';

export interface TokenInsert {
  tenant_id: string;
  config_version: string;
  token: EncodedToken;
  cvc: SealedCvc | undefined;
  created_by: string;
  /** Given or evaluated: others may come upon the same id. An assigned UUID is nobody else's. */
  chosen?: boolean;
  /** Tells the audit trail with the insert; absent where the caller's transaction tells it. */
  audit?: { readonly trace_id: string; readonly via: Via | undefined } | undefined;
  /** Kept with the insert, under the request's idempotency key. */
  record?: InsertRecord | undefined;
}

/**
 * `stale`: another configuration version. `past`: `expires_at` is not in the future. `clock`: the
 * cvc's due time was estimated more than a second off, take the time returned. `conflict`: the id is
 * taken, by a token or by an open transaction that will create one. `in_progress`, `answered`: another
 * request has the idempotency key, or had it.
 */
export type InsertProblem = 'stale' | 'past' | 'clock' | 'conflict' | 'in_progress' | 'answered';

export interface InsertResult {
  problem: InsertProblem | null;
  config_version: string | null;
  created_at_ms: number | null;
  now_ms: number;
}

export type TokenWriter = Batcher<TokenInsert, InsertResult>;

/** How far a process' idea of the database's clock may be off before a cvc is sealed again. */
export const CLOCK_TOLERANCE_MS = 1_000;

const inputText = ({ parameters, names }: typeof RECORD_PARTS.input): string => `
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::text[], $10::bytea[], $11::float8[], $12::uuid[], $13::bytea[],
    $14::float8[], $17::text[], $18::text[], $19::uuid[]${parameters}) WITH ORDINALITY AS i (tenant_id,
    config_version, id, type, container, metadata, search_indexes, fingerprint,
    fingerprint_expression, sealed, expires_at_ms, created_by, cvc_sealed, cvc_due_at_ms, trace_id,
    via_type, via_id${names}, n)`;

const OWN_TIME_MS = milliseconds('clock_now()');

/**
 * One statement and so one snapshot: gate, token, cvc, index terms, count deltas and audit rows are
 * written together or not at all. `MATERIALIZED` keeps the gate from being evaluated per use. In the
 * order of the ids, as everywhere: statements that want the same ones never wait for each other.
 */
const insertText = (keyed: typeof RECORD_PARTS): string => `
    WITH input AS MATERIALIZED (${inputText(keyed.input)}),
    gate AS MATERIALIZED (
      SELECT i.n, t.config_version, CASE
        WHEN t.id IS NULL OR t.config_version <> i.config_version THEN 'stale'${keyed.problems}
        WHEN i.expires_at_ms <= ${OWN_TIME_MS} THEN 'past'
        WHEN abs(i.cvc_due_at_ms - ${CVC_LIFETIME_MS} - ${OWN_TIME_MS}) > ${CLOCK_TOLERANCE_MS}
          THEN 'clock'
        WHEN (
          SELECT true FROM token_locks l
          WHERE l.tenant_id = i.tenant_id AND l.token_id = i.id LIMIT 1
        ) THEN 'conflict'
      END AS problem
      FROM input i LEFT JOIN tenants t ON t.id = i.tenant_id
    ),
    inserted AS (
      INSERT INTO tokens (tenant_id, id, type, container, metadata, search_indexes, fingerprint,
        fingerprint_expression, sealed, expires_at, created_by, created_at${keyed.token.name})
      SELECT i.tenant_id, i.id, i.type, i.container, i.metadata::json, i.search_indexes::json,
        i.fingerprint, i.fingerprint_expression, i.sealed, to_timestamp(i.expires_at_ms / 1000),
        i.created_by, date_trunc('milliseconds', clock_now())${keyed.token.value}
      FROM input i JOIN gate g ON g.n = i.n AND g.problem IS NULL
      ORDER BY i.tenant_id, i.id COLLATE "C"
      ON CONFLICT (tenant_id, id) DO NOTHING
      RETURNING tenant_id, id, container, type, created_at${keyed.token.name}
    ),
    cvcs AS (
      INSERT INTO token_cvcs (tenant_id, token_id, sealed, due_at)
      SELECT i.tenant_id, i.id, i.cvc_sealed, to_timestamp(i.cvc_due_at_ms / 1000)
      FROM input i JOIN inserted t ON t.tenant_id = i.tenant_id AND t.id = i.id
      WHERE i.cvc_sealed IS NOT NULL
      ON CONFLICT (tenant_id, token_id)
        DO UPDATE SET sealed = excluded.sealed, due_at = excluded.due_at
    ),
    terms AS (
      INSERT INTO token_terms (tenant_id, token_id, hash)
      SELECT i.tenant_id, i.id, x.hash
      FROM unnest($15::int4[], $16::bytea[]) AS x (n, hash)
      JOIN input i ON i.n = x.n
      JOIN inserted t ON t.tenant_id = i.tenant_id AND t.id = i.id
      ON CONFLICT DO NOTHING
    ),
    deltas AS (
      INSERT INTO token_count_deltas (tenant_id, container, type, delta)
      SELECT tenant_id, container, type, count(*) FROM inserted GROUP BY 1, 2, 3
    ),
    audits AS (
      INSERT INTO audit_log (tenant_id, created_at, actor_type, actor_id, entity_type, entity_id,
        operation, via_type, via_id, container, denied, trace_id, position)
      SELECT i.tenant_id, clock_now(), 'application', i.created_by, 'token', i.id,
        'create', i.via_type, i.via_id, i.container, false, i.trace_id, ${POSITION}
      FROM input i JOIN inserted t ON t.tenant_id = i.tenant_id AND t.id = i.id
      WHERE i.trace_id IS NOT NULL
    )${keyed.records}
    SELECT i.n::int4 AS n, g.config_version, ${milliseconds('t.created_at')} AS created_at_ms,
      ${OWN_TIME_MS} AS now_ms,
      coalesce(g.problem, CASE WHEN t.id IS NULL THEN 'conflict' END) AS problem
    FROM input i JOIN gate g ON g.n = i.n
    LEFT JOIN inserted t ON t.tenant_id = i.tenant_id AND t.id = i.id`;

export const INSERT_TOKENS = {
  name: 'insert-tokens',
  text: insertText({
    input: { parameters: '', names: '' },
    problems: '',
    token: { name: '', value: '' },
    records: '',
  }),
};

/** The same with records of idempotency keys, apart so that creates without a key do not pay for it. */
export const INSERT_KEYED_TOKENS = {
  name: 'insert-tokens-keyed',
  text: insertText(RECORD_PARTS),
};

/** The statement's parameters, one array per column. */
export function insertValues(inserts: TokenInsert[]): unknown[] {
  const columns: unknown[][] = Array.from({ length: 17 }, () => []);
  const termRows: number[] = [];
  const termHashes: Buffer[] = [];
  inserts.forEach((insert, index) => {
    const { token, cvc, audit } = insert;
    [
      insert.tenant_id,
      insert.config_version,
      token.id,
      token.type,
      token.container,
      token.metadata,
      token.search_indexes,
      token.fingerprint,
      token.fingerprint_expression,
      token.sealed,
      token.expires_at_ms,
      insert.created_by,
      cvc?.sealed ?? null,
      cvc?.due_at_ms ?? null,
      audit?.trace_id ?? null,
      audit?.via?.type ?? null,
      audit?.via?.id ?? null,
    ].forEach((value, column) => {
      columns[column]?.push(value);
    });
    for (const hash of token.terms) {
      termRows.push(index + 1);
      termHashes.push(hash);
    }
  });
  const [ofTokens, ofAudit] = [columns.slice(0, 14), columns.slice(14)];
  return [...ofTokens, termRows, termHashes, ...ofAudit];
}

/**
 * Inserts in one statement. Two inserts of one call must not have the same tenant and id, nor the same
 * scope of a key.
 */
export async function insertTokens(db: Queryable, inserts: TokenInsert[]): Promise<InsertResult[]> {
  const records = inserts.map(({ record }) => record);
  const isKeyed = records.some((record) => record !== undefined);
  const { rows } = await db.query<InsertResult & { n: number }>({
    ...(isKeyed ? INSERT_KEYED_TOKENS : INSERT_TOKENS),
    values: isKeyed ? [...insertValues(inserts), ...recordValues(records)] : insertValues(inserts),
  });
  const results = new Array<InsertResult>(inserts.length);
  for (const { n, ...result } of rows) results[n - 1] = result;
  return results;
}

/**
 * Batches inserts. What a tenant chooses, an id or a key, another request may have that is not done yet:
 * such inserts wait for it with those of their own tenant alone. Nobody else has an assigned id.
 */
export function createInsertBatcher<Insert extends TokenInsert, Result>(
  run: (inserts: Insert[]) => Promise<Result[]>,
  onBatch?: (rows: number) => void,
): Batcher<Insert, Result> {
  const options: BatcherOptions<Insert, Result> = {
    run,
    identity: (insert) => `${insert.tenant_id}/${insert.token.id}`,
    otherIdentity: ({ record }) => record?.scope,
    isolates: isRowError,
    isOutage: isDatabaseUnavailable,
    ...(onBatch === undefined ? {} : { onBatch }),
  };
  const assigned = createBatcher(options);
  const isOutage = (error: unknown): boolean => isDatabaseUnavailable(error) && !isCrossed(error);
  const chosen = createGroupedBatcher(
    { ...options, isHeldUp, isOutage },
    (insert) => insert.tenant_id,
  );
  return {
    submit(insert) {
      const isChosen = insert.chosen === true || insert.record !== undefined;
      return (isChosen ? chosen : assigned).submit(insert);
    },
  };
}

export function createTokenWriter(db: Queryable, onBatch?: (rows: number) => void): TokenWriter {
  return createInsertBatcher<TokenInsert, InsertResult>(
    (inserts) => insertTokens(db, inserts),
    onBatch,
  );
}
