/**
 * Reads tokens by id, many requests in one statement, together with their tenants' configuration
 * version and the database's clock: one round trip answers what the token is, whether what we know
 * of the tenant is still true, and what time it is (design sections 4 and 5).
 */
import { type Batcher, createBatcher } from '../postgres/batcher.ts';
import { isDatabaseUnavailable, retryRead } from '../postgres/database-error.ts';
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';
import {
  CVC_COLUMNS,
  JOIN_CVC,
  NOT_EXPIRED,
  type TokenRow,
  type TokenValues,
  tokenColumns,
  tokenOfValues,
} from './token-row.ts';

export interface TokenKey {
  tenant_id: string;
  id: string;
}

export interface TokenRead {
  /** `undefined` when there is no such token, or it has expired. */
  token: TokenRow | undefined;
  /** `null` when the tenant no longer exists. */
  config_version: string | null;
  now_ms: number;
}

export type BatchReader = Batcher<TokenKey, TokenRead>;

/**
 * `LATERAL … LIMIT 1` keeps one index probe per row whatever the planner believes about the table:
 * the generic plan is the same at 10 rows and at 10 million (tested by EXPLAIN).
 */
const readFrom = (keys: string, sealed: string): string => `
    SELECT q.n::int4 AS n, tn.config_version, ${milliseconds('clock_now()')} AS now_ms, r.*
    FROM ${keys} AS q (tenant_id, id, n)
    LEFT JOIN LATERAL (
      SELECT config_version FROM tenants WHERE tenants.id = q.tenant_id LIMIT 1
    ) tn ON true
    LEFT JOIN LATERAL (
      SELECT ${tokenColumns(sealed)}, ${CVC_COLUMNS}
      FROM tokens t ${JOIN_CVC}
      WHERE t.tenant_id = q.tenant_id AND t.id = q.id AND ${NOT_EXPIRED}
      LIMIT 1
    ) r ON true`;

/** Of payloads that are read with others': a hundred of a megabyte would hold up everybody. */
const SHARED_BYTES_MAX = 32 * 1024;

export const READ_TOKENS = {
  name: 'read-tokens',
  text: readFrom(
    'unnest($1::uuid[], $2::text[]) WITH ORDINALITY',
    `CASE WHEN octet_length(t.sealed) <= ${SHARED_BYTES_MAX} THEN t.sealed END`,
  ),
};

/** The same for a reader alone: no arrays to write, scan and join (a fifth of its time in Postgres). */
export const READ_ONE_TOKEN = {
  name: 'read-one-token',
  text: readFrom('(SELECT $1::uuid, $2::text, 1)', 't.sealed'),
};

/** A row as `rowMode: 'array'` gives it, in the order of the columns above. */
type ReadValues = [n: number, config_version: string | null, now_ms: number, ...TokenValues];

/**
 * One result per key; `undefined` for a token that is too large to be read with others. Rows as arrays:
 * building an object by column names cost node-postgres a tenth of a read.
 */
async function readTokens(db: Queryable, keys: TokenKey[]): Promise<(TokenRead | undefined)[]> {
  const [first] = keys;
  const isOne = keys.length === 1 && first !== undefined;
  const { rows } = await db.query<ReadValues>({
    ...(isOne ? READ_ONE_TOKEN : READ_TOKENS),
    values: isOne
      ? [first.tenant_id, first.id]
      : [keys.map((key) => key.tenant_id), keys.map((key) => key.id)],
    rowMode: 'array',
  });
  const results = new Array<TokenRead | undefined>(keys.length);
  for (const [n, config_version, now_ms, ...values] of rows) {
    const token = tokenOfValues(values);
    if (token !== null) results[n - 1] = { token, config_version, now_ms };
  }
  return results;
}

/** Large tokens are read alone, two at a time, so that nobody's small one waits for them. */
export function createBatchReader(db: Queryable, onBatch?: (rows: number) => void): BatchReader {
  const common = {
    isOutage: isDatabaseUnavailable,
    ...(onBatch === undefined ? {} : { onBatch }),
  };
  const alone: BatchReader = createBatcher({
    ...common,
    identity: () => '',
    async run(keys) {
      const [read] = await retryRead(() => readTokens(db, keys));
      if (read === undefined) throw new Error('a token that was read alone is not there');
      return [read];
    },
  });
  return createBatcher({
    ...common,
    async run(keys) {
      const reads = await retryRead(() => readTokens(db, keys));
      return keys.map((key, index) => reads[index] ?? alone.submit(key));
    },
  });
}
