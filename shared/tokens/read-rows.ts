/**
 * The statements that read tokens by id together with their tenants' configuration version and the
 * database's clock, and their rows: with all there is to show, or with what it takes to open them.
 */
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';
import {
  CVC_COLUMNS,
  DETAIL_COLUMNS,
  JOIN_CVC,
  NOT_EXPIRED,
  type SealedRow,
  type SealedValues,
  sealedColumns,
  sealedRowOf,
  type TokenRow,
  type TokenValues,
  tokenRowOf,
} from './token-row.ts';

export interface TokenKey {
  tenant_id: string;
  id: string;
}

export interface TokenRead<Row> {
  /** `undefined` when there is no such token, or it has expired. */
  token: Row | undefined;
  /** `null` when the tenant no longer exists. */
  config_version: string | null;
  now_ms: number;
}

interface Statement {
  readonly name: string;
  readonly text: string;
}

/** One way to read tokens. */
export interface TokenReading<Row, Values extends unknown[]> {
  readonly many: Statement;
  /** The same for a reader alone: no arrays to write, scan and join (a fifth of its time in Postgres). */
  readonly one: Statement;
  /** Values of a row that are the token's; behind them are its place, the version and the time. */
  readonly width: Values['length'];
  /** `null`: a token whose payload was left out; `undefined`: none. */
  rowOf(values: readonly [...Values, ...unknown[]]): Row | null | undefined;
}

/** Of payloads that are read with others': a hundred of a megabyte would hold up everybody. */
const SHARED_BYTES_MAX = 32 * 1024;
const SHARED = `CASE WHEN octet_length(t.sealed) <= ${SHARED_BYTES_MAX} THEN t.sealed END`;

const MANY = 'unnest($1::uuid[], $2::text[]) WITH ORDINALITY';
const ONE = '(SELECT $1::uuid, $2::text, 1)';

/**
 * `LATERAL … LIMIT 1` keeps one index probe per row whatever the planner believes about the table:
 * the generic plan is the same at 10 rows and at 10 million (tested by EXPLAIN).
 */
const readFrom = (keys: string, columns: string): string => `
    SELECT r.*, q.n::int4, tn.config_version, ${milliseconds('clock_now()')}
    FROM ${keys} AS q (tenant_id, id, n)
    LEFT JOIN LATERAL (
      SELECT config_version FROM tenants WHERE tenants.id = q.tenant_id LIMIT 1
    ) tn ON true
    LEFT JOIN LATERAL (
      SELECT ${columns}
      FROM tokens t ${JOIN_CVC}
      WHERE t.tenant_id = q.tenant_id AND t.id = q.id AND ${NOT_EXPIRED}
      LIMIT 1
    ) r ON true`;

const sealedFrom = (sealed: string): string => `${sealedColumns(sealed)}, ${CVC_COLUMNS}`;
const wholeFrom = (sealed: string): string => `${sealedFrom(sealed)}, ${DETAIL_COLUMNS}`;

/** All there is to show of a token. */
export const WHOLE_TOKENS: TokenReading<TokenRow, TokenValues> = {
  many: { name: 'read-tokens', text: readFrom(MANY, wholeFrom(SHARED)) },
  one: { name: 'read-one-token', text: readFrom(ONE, wholeFrom('t.sealed')) },
  width: 15,
  rowOf: tokenRowOf,
};

/** What is put into bodies needs half of the columns, and each takes its time. */
export const SEALED_TOKENS: TokenReading<SealedRow, SealedValues> = {
  many: { name: 'read-sealed-tokens', text: readFrom(MANY, sealedFrom(SHARED)) },
  one: { name: 'read-one-sealed-token', text: readFrom(ONE, sealedFrom('t.sealed')) },
  width: 7,
  rowOf: sealedRowOf,
};

/**
 * One result per key; `undefined` for a token that is too large to be read with others. Rows as arrays:
 * building an object by column names cost node-postgres a tenth of a read.
 */
export async function readRows<Row, Values extends unknown[]>(
  db: Queryable,
  keys: readonly TokenKey[],
  { many, one, width, rowOf }: TokenReading<Row, Values>,
): Promise<(TokenRead<Row> | undefined)[]> {
  const [first] = keys;
  const isOne = keys.length === 1 && first !== undefined;
  const { rows } = await db.query<[...Values, ...unknown[]]>({
    ...(isOne ? one : many),
    values: isOne
      ? [first.tenant_id, first.id]
      : [keys.map((key) => key.tenant_id), keys.map((key) => key.id)],
    rowMode: 'array',
  });
  const results = new Array<TokenRead<Row> | undefined>(keys.length);
  for (const values of rows) {
    const token = rowOf(values);
    if (token === null) continue;
    results[(values[width] as number) - 1] = {
      token,
      config_version: values[width + 1] as string | null,
      now_ms: values[width + 2] as number,
    };
  }
  return results;
}
