/**
 * Transactions of the API as rows: an open one holds what it has staged, and nothing of Postgres stays
 * open between its requests. It ends once: by commit, by rollback, or by its time, whether or not a
 * sweep has noted that. Every ending locks its row alone, every write in it shares the row.
 */
import type { ConfigReading } from '../config-entries/config-version.ts';
import { ApiError } from '../errors.ts';
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';

/** Tokens that one transaction may change: its commit is one statement each, within its time limit. */
export const TRANSACTION_TOKENS_MAX = 1_000;
/** Bytes of sealed tokens in one transaction, for the same reason. */
export const TRANSACTION_BYTES_MAX = 16 * 1024 * 1024;

/** Whose transaction a request names. */
export interface TransactionKey {
  readonly tenant_id: string;
  readonly id: string;
  /** The application: no other of the tenant may use it. */
  readonly application_id: string;
}

const OWN_TIME_MS = milliseconds('clock_now()');
const IS_DUE = 'expires_at <= clock_now()';

/** `unknown`: also another tenant's or application's. `ended`: finished, out of time, or being ended. */
export type TransactionProblem = 'unknown' | 'ended' | 'full';

export interface HeldTransaction extends ConfigReading {
  problem: TransactionProblem | null;
}

/**
 * Keeps the transaction from ending until the caller's own is done. One that is being ended right now
 * is not waited for: it counts as ended.
 */
export async function holdTransaction(
  client: Queryable,
  { tenant_id, id, application_id }: TransactionKey,
): Promise<HeldTransaction> {
  const { rows } = await client.query<HeldTransaction>({
    name: 'hold-transaction',
    text: `
      WITH held AS MATERIALIZED (
        SELECT state, expires_at FROM transactions WHERE tenant_id = $1 AND id = $2
        FOR SHARE SKIP LOCKED
      )
      SELECT (SELECT config_version FROM tenants WHERE id = $1), ${OWN_TIME_MS} AS now_ms, CASE
        WHEN NOT EXISTS (
          SELECT 1 FROM transactions WHERE tenant_id = $1 AND id = $2 AND created_by = $3
        ) THEN 'unknown'
        WHEN NOT EXISTS (SELECT 1 FROM held WHERE state = 'open' AND NOT ${IS_DUE}) THEN 'ended'
        WHEN used.tokens >= ${TRANSACTION_TOKENS_MAX} OR used.bytes >= ${TRANSACTION_BYTES_MAX}
          THEN 'full'
      END AS problem
      FROM (
        SELECT count(*) AS tokens, sum(octet_length(sealed)) AS bytes FROM staged_tokens
        WHERE tenant_id = $1 AND transaction_id = $2
      ) used`,
    values: [tenant_id, id, application_id],
  });
  const [held] = rows;
  if (held === undefined) throw new Error('a query without FROM rows');
  return held;
}

export type Ending = 'committed' | 'rolled_back';

export interface EndedTransaction extends ConfigReading {
  problem: Exclude<TransactionProblem, 'full'> | null;
}

/**
 * Ends it in the caller's transaction, after the writes that are under way in it; what is staged stays
 * until it is applied or cleared, by later statements: this one may not see the last of it.
 */
export async function endTransaction(
  client: Queryable,
  transaction: TransactionKey,
  ending: Ending,
): Promise<EndedTransaction> {
  const { tenant_id, id } = transaction;
  for (let waited = false; ; waited = true) {
    const { problem, ...reading } = await endIfFree(client, transaction, ending);
    if (problem !== 'busy') return { ...reading, problem };
    if (waited) throw new Error('a transaction that is locked and busy');
    // Its time is judged after the wait, by the next statement.
    await client.query({
      name: 'lock-transaction',
      text: 'SELECT 1 FROM transactions WHERE tenant_id = $1 AND id = $2 FOR UPDATE',
      values: [tenant_id, id],
    });
  }
}

/** `busy`: it is open as far as can be seen, but somebody writes in it or ends it. */
async function endIfFree(
  client: Queryable,
  { tenant_id, id, application_id }: TransactionKey,
  ending: Ending,
): Promise<ConfigReading & { problem: EndedTransaction['problem'] | 'busy' }> {
  const { rows } = await client.query<ConfigReading & { problem: EndedTransaction['problem'] }>({
    name: 'end-transaction',
    text: `
      WITH known AS MATERIALIZED (
        SELECT state = 'open' AND NOT ${IS_DUE} AS is_open FROM transactions
        WHERE tenant_id = $1 AND id = $2 AND created_by = $3
      ),
      free AS MATERIALIZED (
        SELECT id FROM transactions WHERE tenant_id = $1 AND id = $2 AND created_by = $3
          AND state = 'open' AND NOT ${IS_DUE} FOR UPDATE SKIP LOCKED
      ),
      ended AS (
        UPDATE transactions SET state = $4, finished_at = clock_now()
        WHERE tenant_id = $1 AND id = (SELECT id FROM free) RETURNING 1
      )
      SELECT (SELECT config_version FROM tenants WHERE id = $1), ${OWN_TIME_MS} AS now_ms, CASE
        WHEN EXISTS (SELECT 1 FROM ended) THEN NULL
        WHEN NOT EXISTS (SELECT 1 FROM known) THEN 'unknown'
        WHEN (SELECT is_open FROM known) THEN 'busy'
        ELSE 'ended'
      END AS problem`,
    values: [tenant_id, id, application_id, ending],
  });
  const [row] = rows;
  if (row === undefined) throw new Error('a query without FROM rows');
  return row;
}

/** Always true; stated wherever what a transaction holds is found by the index made for that. */
export const ANY_TOKEN = "token_id > ''";

/** Removes everything the transaction has staged, and lets go of its tokens. */
export async function clearStaged(
  client: Queryable,
  { tenant_id, id }: Pick<TransactionKey, 'tenant_id' | 'id'>,
): Promise<void> {
  await client.query({
    name: 'clear-staged',
    text: `
      WITH cvcs AS (DELETE FROM staged_cvcs WHERE tenant_id = $1 AND transaction_id = $2),
      locks AS (
        DELETE FROM token_locks WHERE tenant_id = $1 AND transaction_id = $2 AND ${ANY_TOKEN}
      )
      DELETE FROM staged_tokens WHERE tenant_id = $1 AND transaction_id = $2`,
    values: [tenant_id, id],
  });
}

/**
 * Takes a token from the transaction that holds it if that has ended, and notes that its time is over,
 * so that by nobody's clock it can commit any more. One that is being ended right now keeps the token.
 */
export async function takeFromEnded(
  db: Queryable,
  tenantId: string,
  tokenId: string,
): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'take-token-from-ended',
    text: `
      WITH holder AS MATERIALIZED (
        SELECT transaction_id AS id FROM token_locks WHERE tenant_id = $1 AND token_id = $2
      ),
      due AS MATERIALIZED (
        SELECT id FROM transactions WHERE tenant_id = $1 AND id = (SELECT id FROM holder)
          AND state = 'open' AND ${IS_DUE} FOR UPDATE SKIP LOCKED
      ),
      expired AS (
        UPDATE transactions SET state = 'expired', finished_at = clock_now()
        WHERE tenant_id = $1 AND id = (SELECT id FROM due) RETURNING 1
      )
      DELETE FROM token_locks l WHERE l.tenant_id = $1 AND l.token_id = $2
        AND l.transaction_id = (SELECT id FROM holder)
        AND (EXISTS (SELECT 1 FROM expired) OR NOT EXISTS (
          SELECT 1 FROM transactions t WHERE t.tenant_id = $1 AND t.id = l.transaction_id
            AND t.state = 'open'))`,
    values: [tenantId, tokenId],
  });
  return rowCount === 1;
}

/** The 409 of a token that another open transaction has changed. */
export function tokenHeld(): ApiError {
  return new ApiError('conflict', 'The token is held by an open transaction');
}
