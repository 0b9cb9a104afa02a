/**
 * Statements on single tokens inside a transaction: lock, change, delete, find a duplicate. Every one
 * names the tenant first. A token is locked before it is judged, so nothing changes between the
 * decision and the write.
 */
import { type NamedToken, type NamingRecord, namingRecord } from '../idempotency/named-token.ts';
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';
import { takeFromEnded } from '../transactions/transaction-store.ts';
import type { SealedCvc } from './seal-cvc.ts';
import type { EncodedToken } from './token-draft.ts';
import {
  CVC_COLUMNS,
  JOIN_CVC,
  NO_CVC_COLUMNS,
  NOT_EXPIRED,
  TOKEN_COLUMNS,
  type TokenRow,
} from './token-row.ts';

export interface LockedToken {
  token: TokenRow | undefined;
  /** `null` when the tenant no longer exists. */
  config_version: string | null;
  now_ms: number;
  /** An open transaction has changed it: nobody else may, until that ends. */
  held: boolean;
  /** Itself, when the record of an idempotency key names it: the answer is to be written down first. */
  named: readonly NamedToken[];
}

/** Locks the row first: what is read afterwards, in a new snapshot, is what nobody else changes. */
const LOCK_TOKEN = {
  name: 'lock-token',
  text: 'SELECT 1 FROM tokens WHERE tenant_id = $1 AND id = $2 FOR UPDATE',
};

const READ_LOCKED_TOKEN = {
  name: 'read-locked-token',
  text: `
    SELECT tn.config_version, ${milliseconds('clock_now()')} AS now_ms, r.*, k.*, EXISTS (
      SELECT 1 FROM token_locks l WHERE l.tenant_id = $1 AND l.token_id = $2
    ) AS held
    FROM (SELECT 1) AS one
    LEFT JOIN tenants tn ON tn.id = $1
    LEFT JOIN LATERAL (
      SELECT ${TOKEN_COLUMNS}, ${CVC_COLUMNS}, t.record_scope FROM tokens t ${JOIN_CVC}
      WHERE t.tenant_id = $1 AND t.id = $2 AND ${NOT_EXPIRED}
    ) r ON true
    LEFT JOIN ${namingRecord('r')} k ON true`,
};

/** Locks a token until the transaction ends, and reads it with version and time. */
export async function lockToken(
  client: Queryable,
  tenantId: string,
  id: string,
): Promise<LockedToken> {
  const { rowCount } = await client.query({ ...LOCK_TOKEN, values: [tenantId, id] });
  type Row = Omit<LockedToken, 'token' | 'named'> &
    TokenRow & { id: string | null } & (NamingRecord | { scope: null });
  const { rows } = await client.query<Row>({
    ...READ_LOCKED_TOKEN,
    values: [tenantId, id],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('a query without FROM rows');
  // It came after the lock was asked for, or in the place of one that was waited for: nobody holds it.
  if (row.id !== null && rowCount === 0) return lockToken(client, tenantId, id);
  return {
    token: row.id === null ? undefined : row,
    config_version: row.config_version,
    now_ms: row.now_ms,
    held: row.held && !(await takeFromEnded(client, tenantId, id)),
    named: row.scope === null ? [] : [{ row, scope: row.scope, shows_mask: row.shows_mask }],
  };
}

/** What goes with the rows of `deleted (tenant_id, id, container, type)`, in the same statement. */
export const DELETE_PARTS = `
  terms AS (
    DELETE FROM token_terms x USING deleted d WHERE x.tenant_id = d.tenant_id AND x.token_id = d.id
  ),
  cvcs AS (
    DELETE FROM token_cvcs x USING deleted d WHERE x.tenant_id = d.tenant_id AND x.token_id = d.id
  ),
  deltas AS (
    INSERT INTO token_count_deltas (tenant_id, container, type, delta)
    SELECT tenant_id, container, type, -count(*) FROM deleted GROUP BY 1, 2, 3
  )`;

const DELETE_TOKENS_AND_PARTS = `${DELETE_PARTS}
  SELECT count(*)::int4 AS count FROM deleted`;

/** Deletes a token with all that is its. The caller holds its lock, and has written its answer down. */
export async function deleteToken(client: Queryable, tenantId: string, id: string): Promise<void> {
  await client.query({
    name: 'delete-token',
    text: `
      WITH deleted AS (
        DELETE FROM tokens WHERE tenant_id = $1 AND id = $2
        RETURNING tenant_id, id, container, type
      ), ${DELETE_TOKENS_AND_PARTS}`,
    values: [tenantId, id],
  });
}

/**
 * Frees an id that seems to be taken, by a token whose time has passed or by a transaction that has
 * ended. Returns whether it did.
 */
export async function freeId(client: Queryable, tenantId: string, id: string): Promise<boolean> {
  if (await deleteIfExpired(client, tenantId, id)) return true;
  return takeFromEnded(client, tenantId, id);
}

/** Removes a token whose time has passed. Returns whether it did. */
async function deleteIfExpired(client: Queryable, tenantId: string, id: string): Promise<boolean> {
  const { rows } = await client.query<{ count: number }>({
    name: 'delete-expired-token',
    text: `
      WITH deleted AS (
        DELETE FROM tokens t WHERE t.tenant_id = $1 AND t.id = $2 AND NOT ${NOT_EXPIRED}
        RETURNING tenant_id, id, container, type
      ), ${DELETE_TOKENS_AND_PARTS}`,
    values: [tenantId, id],
  });
  return rows[0]?.count === 1;
}

export interface TokenChange {
  token: EncodedToken;
  /** `undefined` keeps what there is, `null` removes it. */
  cvc: SealedCvc | null | undefined;
  modified_by: string;
  /** Where its count stood before. */
  previous_container: string;
}

/** Writes a changed token over its locked row, which no record names. Returns the time in milliseconds. */
export async function replaceToken(
  client: Queryable,
  tenantId: string,
  change: TokenChange,
): Promise<number> {
  const { token, cvc } = change;
  const { rows } = await client.query<{ modified_at_ms: number }>({
    name: 'replace-token',
    text: `
      UPDATE tokens t SET container = $3, metadata = $4, search_indexes = $5, fingerprint = $6,
        fingerprint_expression = $7, sealed = $8, expires_at = to_timestamp($9::float8 / 1000),
        modified_by = $10, modified_at = date_trunc('milliseconds', clock_now()),
        record_scope = NULL
      WHERE tenant_id = $1 AND id = $2
      RETURNING ${milliseconds('t.modified_at')} AS modified_at_ms`,
    values: [
      tenantId,
      token.id,
      token.container,
      token.metadata,
      token.search_indexes,
      token.fingerprint,
      token.fingerprint_expression,
      token.sealed,
      token.expires_at_ms,
      change.modified_by,
    ],
  });
  await replaceTerms(client, tenantId, token);
  if (cvc !== undefined) await replaceCvc(client, tenantId, token.id, cvc);
  if (token.container !== change.previous_container) {
    await client.query(
      `INSERT INTO token_count_deltas (tenant_id, container, type, delta)
       VALUES ($1, $2, $4, -1), ($1, $3, $4, 1)`,
      [tenantId, change.previous_container, token.container, token.type],
    );
  }
  return rows[0]?.modified_at_ms ?? 0;
}

async function replaceTerms(
  client: Queryable,
  tenantId: string,
  { id, terms }: EncodedToken,
): Promise<void> {
  await client.query({
    name: 'replace-token-terms',
    text: `
      WITH wanted AS (SELECT DISTINCT hash FROM unnest($3::bytea[]) AS w (hash)),
      gone AS (
        DELETE FROM token_terms
        WHERE tenant_id = $1 AND token_id = $2 AND hash NOT IN (SELECT hash FROM wanted)
      )
      INSERT INTO token_terms (tenant_id, token_id, hash) SELECT $1, $2, hash FROM wanted
      ON CONFLICT DO NOTHING`,
    values: [tenantId, id, terms],
  });
}

async function replaceCvc(
  client: Queryable,
  tenantId: string,
  id: string,
  cvc: SealedCvc | null,
): Promise<void> {
  if (cvc === null) {
    await client.query('DELETE FROM token_cvcs WHERE tenant_id = $1 AND token_id = $2', [
      tenantId,
      id,
    ]);
    return;
  }
  await client.query(
    `INSERT INTO token_cvcs (tenant_id, token_id, sealed, due_at)
     VALUES ($1, $2, $3, to_timestamp($4::float8 / 1000))
     ON CONFLICT (tenant_id, token_id)
       DO UPDATE SET sealed = excluded.sealed, due_at = excluded.due_at`,
    [tenantId, id, cvc.sealed, cvc.due_at_ms],
  );
}

/**
 * Makes deduplicating writers of one fingerprint wait for each other until their transactions end.
 * The lookup must be a later statement: one statement would see the snapshot from before the lock.
 */
export async function lockFingerprint(
  client: Queryable,
  tenantId: string,
  fingerprint: string,
): Promise<void> {
  await client.query({
    name: 'lock-fingerprint',
    text: `SELECT pg_advisory_xact_lock(hashtextextended($1::text || '/' || $2::text, 0))`,
    values: [tenantId, fingerprint],
  });
}

/** The oldest live token with this fingerprint, other than `exceptId`. */
export async function findByFingerprint(
  client: Queryable,
  tenantId: string,
  fingerprint: string,
  exceptId: string | undefined,
): Promise<TokenRow | undefined> {
  const { rows } = await client.query<TokenRow>({
    name: 'find-token-by-fingerprint',
    text: `
      SELECT ${TOKEN_COLUMNS}, ${NO_CVC_COLUMNS} FROM tokens t
      WHERE t.tenant_id = $1 AND t.fingerprint = $2 AND ${NOT_EXPIRED}
        AND ($3::text IS NULL OR t.id <> $3)
      ORDER BY t.created_at, t.id LIMIT 1`,
    values: [tenantId, fingerprint, exceptId ?? null],
  });
  return rows[0];
}
