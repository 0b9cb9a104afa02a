/**
 * Tokens as one open transaction sees them: what it has staged over what is live. The caller holds the
 * transaction; a token is locked before it is judged, as outside of one.
 */
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';
import type { SealedCvc } from '../tokens/seal-cvc.ts';
import type { EncodedToken } from '../tokens/token-draft.ts';
import { NO_CVC_COLUMNS, NOT_EXPIRED, TOKEN_COLUMNS, type TokenRow } from '../tokens/token-row.ts';
import { termsText } from './stage-creates.ts';
import { type TransactionKey, takeFromEnded, tokenHeld } from './transaction-store.ts';

export type StagedOperation = 'create' | 'update' | 'delete' | 'replace';

export interface VisibleToken {
  /** As the transaction sees it; `undefined` when there is none, or its time is over. */
  token: TokenRow | undefined;
  /** What it has staged of this id so far. */
  operation: StagedOperation | null;
  /** Where the live token counts; null when there is none. */
  live_container: string | null;
  /** The transaction that holds the id, which may be this one. */
  held_by: string | null;
  now_ms: number;
}

type TransactionId = Pick<TransactionKey, 'tenant_id' | 'id'>;

/** First the live one, as everybody does: what is read afterwards is what nobody else changes. */
const LOCK_VISIBLE = {
  name: 'lock-visible-token',
  text: `
    WITH live AS MATERIALIZED (
      SELECT 1 FROM tokens WHERE tenant_id = $1 AND id = $3 FOR UPDATE
    ),
    staged AS MATERIALIZED (
      SELECT 1 FROM staged_tokens WHERE tenant_id = $1 AND transaction_id = $2 AND id = $3
      FOR UPDATE
    )
    SELECT (SELECT count(*) FROM live)::int4 AS live, (SELECT count(*) FROM staged)::int4 AS staged`,
};

const STAGED = 's.tenant_id = $1 AND s.transaction_id = $2 AND s.id = $3';

const READ_VISIBLE = {
  name: 'read-visible-token',
  text: `
    SELECT ${milliseconds('clock_now()')} AS now_ms, v.*,
      (SELECT s.operation FROM staged_tokens s WHERE ${STAGED}) AS operation,
      (SELECT l.transaction_id FROM token_locks l
        WHERE l.tenant_id = $1 AND l.token_id = $3) AS held_by,
      (SELECT t.container FROM tokens t
        WHERE t.tenant_id = $1 AND t.id = $3 AND ${NOT_EXPIRED}) AS live_container
    FROM (SELECT 1) AS one LEFT JOIN LATERAL (
      SELECT ${TOKEN_COLUMNS}, ${NO_CVC_COLUMNS} FROM staged_tokens t
      WHERE t.tenant_id = $1 AND t.transaction_id = $2 AND t.id = $3
        AND t.operation <> 'delete' AND ${NOT_EXPIRED}
      UNION ALL
      SELECT ${TOKEN_COLUMNS}, ${NO_CVC_COLUMNS} FROM tokens t
      WHERE t.tenant_id = $1 AND t.id = $3 AND ${NOT_EXPIRED}
        AND NOT EXISTS (SELECT 1 FROM staged_tokens s WHERE ${STAGED})
    ) v ON true`,
};

/** Locks what there is of an id, live and staged, and reads what the transaction sees. */
export async function lockVisible(
  client: Queryable,
  transaction: TransactionId,
  tokenId: string,
): Promise<VisibleToken> {
  const values = [transaction.tenant_id, transaction.id, tokenId];
  const locked = await client.query<{ live: number }>({ ...LOCK_VISIBLE, values });
  type Row = Omit<VisibleToken, 'token'> & TokenRow & { id: string | null };
  const { rows } = await client.query<Row>({ ...READ_VISIBLE, values });
  const [row] = rows;
  if (row === undefined) throw new Error('a query without FROM rows');
  const { operation, live_container, held_by, now_ms } = row;
  // As in lockToken: it came after the lock was asked for.
  if (live_container !== null && locked.rows[0]?.live === 0) {
    return lockVisible(client, transaction, tokenId);
  }
  const token = row.id === null ? undefined : row;
  return { token, operation, live_container, held_by, now_ms };
}

/** Holds a token until the transaction ends. Throws 409 when another open one has it. */
export async function holdToken(
  client: Queryable,
  { tenant_id, id }: TransactionId,
  tokenId: string,
  heldBy: string | null,
): Promise<void> {
  if (heldBy === id) return;
  if (heldBy !== null && !(await takeFromEnded(client, tenant_id, tokenId))) throw tokenHeld();
  const { rowCount } = await client.query({
    name: 'hold-token',
    text: `
      INSERT INTO token_locks (tenant_id, token_id, transaction_id) VALUES ($1, $2, $3)
      ON CONFLICT (tenant_id, token_id) DO UPDATE SET transaction_id = excluded.transaction_id
        WHERE token_locks.transaction_id = excluded.transaction_id`,
    values: [tenant_id, tokenId, id],
  });
  if (rowCount === 0) throw tokenHeld();
}

export interface StagedChange {
  operation: Exclude<StagedOperation, 'delete'>;
  token: EncodedToken;
  /** `undefined` keeps what there is, `null` removes it. */
  cvc: SealedCvc | null | undefined;
  created_by: string;
  created_at_ms: number;
  modified_by: string;
  previous_container: string | null;
}

/** Stages a changed token over what was staged of it. Returns the time of the change. */
export async function stageChange(
  client: Queryable,
  transaction: TransactionId,
  change: StagedChange,
): Promise<number> {
  const { token, cvc } = change;
  const { rows } = await client.query<{ modified_at_ms: number }>({
    name: 'stage-change',
    text: `
      INSERT INTO staged_tokens AS s (tenant_id, transaction_id, id, operation, previous_container,
        type, container, metadata, search_indexes, fingerprint, fingerprint_expression, sealed,
        terms, expires_at, created_by, created_at, modified_by, modified_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::text::bytea[],
        to_timestamp($14::float8 / 1000), $15, to_timestamp($16::float8 / 1000), $17,
        date_trunc('milliseconds', clock_now()))
      ON CONFLICT (tenant_id, transaction_id, id) DO UPDATE SET operation = excluded.operation,
        container = excluded.container, metadata = excluded.metadata,
        search_indexes = excluded.search_indexes, fingerprint = excluded.fingerprint,
        fingerprint_expression = excluded.fingerprint_expression, sealed = excluded.sealed,
        terms = excluded.terms, expires_at = excluded.expires_at,
        modified_by = excluded.modified_by, modified_at = excluded.modified_at
      RETURNING ${milliseconds('s.modified_at')} AS modified_at_ms`,
    values: [
      ...[transaction.tenant_id, transaction.id, token.id, change.operation],
      ...[change.previous_container, token.type, token.container, token.metadata],
      ...[token.search_indexes, token.fingerprint, token.fingerprint_expression, token.sealed],
      ...[termsText(token.terms), token.expires_at_ms, change.created_by, change.created_at_ms],
      change.modified_by,
    ],
  });
  // A new token has no cvc but the one staged with it: null leaves nothing to remove at commit.
  if (cvc !== undefined) await stageCvc(client, transaction, token.id, cvc);
  return rows[0]?.modified_at_ms ?? 0;
}

async function stageCvc(
  client: Queryable,
  { tenant_id, id }: TransactionId,
  tokenId: string,
  cvc: SealedCvc | null,
): Promise<void> {
  await client.query({
    name: 'stage-cvc',
    text: `
      INSERT INTO staged_cvcs (tenant_id, transaction_id, token_id, sealed, due_at)
      VALUES ($1, $2, $3, $4, to_timestamp($5::float8 / 1000))
      ON CONFLICT (tenant_id, transaction_id, token_id)
        DO UPDATE SET sealed = excluded.sealed, due_at = excluded.due_at`,
    values: [tenant_id, id, tokenId, cvc?.sealed ?? null, cvc?.due_at_ms ?? null],
  });
}

/** Stages that the live token goes. The caller has locked and held it. */
export async function stageDeletion(
  client: Queryable,
  { tenant_id, id }: TransactionId,
  tokenId: string,
): Promise<void> {
  await client.query({
    name: 'stage-deletion',
    text: `
      WITH cvcs AS (
        DELETE FROM staged_cvcs WHERE tenant_id = $1 AND transaction_id = $2 AND token_id = $3
      )
      INSERT INTO staged_tokens (tenant_id, transaction_id, id, operation, previous_container, type,
        container, sealed, created_by, created_at)
      SELECT $1, $2, $3, 'delete', container, type, container, '', created_by, created_at
      FROM tokens WHERE tenant_id = $1 AND id = $3
      ON CONFLICT (tenant_id, transaction_id, id) DO UPDATE SET operation = 'delete',
        type = excluded.type, container = excluded.container, metadata = NULL, fingerprint = NULL,
        search_indexes = '[]', sealed = '', terms = '{}', expires_at = NULL,
        created_container = NULL`,
    values: [tenant_id, id, tokenId],
  });
}

/** Forgets a token that the transaction itself has created, and lets its id go. */
export async function unstageCreate(
  client: Queryable,
  { tenant_id, id }: TransactionId,
  tokenId: string,
): Promise<void> {
  await client.query({
    name: 'unstage-create',
    text: `
      WITH cvcs AS (
        DELETE FROM staged_cvcs WHERE tenant_id = $1 AND transaction_id = $2 AND token_id = $3
      ),
      locks AS (
        DELETE FROM token_locks WHERE tenant_id = $1 AND token_id = $3 AND transaction_id = $2
      )
      DELETE FROM staged_tokens WHERE tenant_id = $1 AND transaction_id = $2 AND id = $3`,
    values: [tenant_id, id, tokenId],
  });
}
