/**
 * The statements that read tokens by id together with their tenants' configuration version and the
 * database's clock, and their rows: with all there is to show, or with what it takes to open them.
 */
import type { ConfigReading } from '../config-entries/config-version.ts';
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
  rowOf(id: string, values: readonly [...Values, ...unknown[]]): Row | null | undefined;
}

/** In place of what is no id; no token's id has a control character. */
const NO_TOKEN = '\u0001';

/** Of payloads that are read with others': a hundred of a megabyte would hold up everybody. */
const SHARED_BYTES_MAX = 32 * 1024;
const SHARED = `CASE WHEN octet_length(t.sealed) <= ${SHARED_BYTES_MAX} THEN t.sealed END`;

/**
 * The ids of a tenant are the lines of one text: node-postgres escapes every element of an array by itself,
 * and Postgres would look up the tenant for each of its tokens. Version and time stand in its first row.
 */
const MANY = `
  unnest($1::uuid[], $2::text[], $3::int4[]) AS q (tenant_id, ids, start)
  CROSS JOIN LATERAL unnest(string_to_array(q.ids, E'\\n')) WITH ORDINALITY AS k (id, n)`;
const ONE =
  '(SELECT $1::uuid, 0) AS q (tenant_id, start) CROSS JOIN (SELECT $2::text, 1) AS k (id, n)';

/**
 * `LATERAL … LIMIT 1` keeps one index probe per row whatever the planner believes about the table:
 * the generic plan is the same at 10 rows and at 10 million (tested by EXPLAIN).
 */
const readFrom = (keys: string, columns: string): string => `
    SELECT r.*, (q.start + k.n)::int4, tn.config_version, tn.now_ms
    FROM ${keys}
    LEFT JOIN LATERAL (
      SELECT (SELECT config_version FROM tenants WHERE tenants.id = q.tenant_id) AS config_version,
        ${milliseconds('clock_now()')} AS now_ms
    ) tn ON k.n = 1
    LEFT JOIN LATERAL (
      SELECT ${columns}
      FROM tokens t ${JOIN_CVC}
      WHERE t.tenant_id = q.tenant_id AND t.id = k.id AND ${NOT_EXPIRED}
      LIMIT 1
    ) r ON true`;

const sealedFrom = (sealed: string): string => `${sealedColumns(sealed)}, ${CVC_COLUMNS}`;
const wholeFrom = (sealed: string): string => `${sealedFrom(sealed)}, ${DETAIL_COLUMNS}`;

/** All there is to show of a token. */
export const WHOLE_TOKENS: TokenReading<TokenRow, TokenValues> = {
  many: { name: 'read-tokens', text: readFrom(MANY, wholeFrom(SHARED)) },
  one: { name: 'read-one-token', text: readFrom(ONE, wholeFrom('t.sealed')) },
  width: 14,
  rowOf: tokenRowOf,
};

/** What is put into bodies needs half of the columns, and each takes its time. */
export const SEALED_TOKENS: TokenReading<SealedRow, SealedValues> = {
  many: { name: 'read-sealed-tokens', text: readFrom(MANY, sealedFrom(SHARED)) },
  one: { name: 'read-one-sealed-token', text: readFrom(ONE, sealedFrom('t.sealed')) },
  width: 6,
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
  const lines = linesOf(keys);
  const { rows } = await db.query<[...Values, ...unknown[]]>({
    ...(isOne ? one : many),
    values: isOne ? [first.tenant_id, first.id] : [lines.tenantIds, lines.ids, lines.starts],
    rowMode: 'array',
  });
  const keyOf = (values: readonly unknown[]): number =>
    lines.keys[(values[width] as number) - 1] as number;
  const readings = new Map<string, ConfigReading>();
  for (const values of rows) {
    const now_ms = values[width + 2] as number | null;
    if (now_ms === null) continue;
    const config_version = values[width + 1] as string | null;
    readings.set((keys[keyOf(values)] as TokenKey).tenant_id, { config_version, now_ms });
  }
  const results = new Array<TokenRead<Row> | undefined>(keys.length);
  for (const values of rows) {
    const index = keyOf(values);
    const { tenant_id, id } = keys[index] as TokenKey;
    const token = rowOf(id, values);
    if (token === null) continue;
    results[index] = { token, ...(readings.get(tenant_id) as ConfigReading) };
  }
  return results;
}

/** Keys by tenant, in the order in which `MANY` numbers them. */
interface Lines {
  readonly tenantIds: string[];
  /** Of a tenant's tokens, one in a line. */
  readonly ids: string[];
  /** How many lines are before those of a tenant. */
  readonly starts: number[];
  /** By line: the place of its key. */
  readonly keys: number[];
}

function linesOf(keys: readonly TokenKey[]): Lines {
  const ofTenants = new Map<string, number[]>();
  for (const [index, { tenant_id }] of keys.entries()) {
    const known = ofTenants.get(tenant_id);
    if (known === undefined) ofTenants.set(tenant_id, [index]);
    else known.push(index);
  }
  const lines: Lines = { tenantIds: [], ids: [], starts: [], keys: [] };
  for (const [tenantId, indexes] of ofTenants) {
    lines.tenantIds.push(tenantId);
    lines.ids.push(indexes.map((index) => lineOf((keys[index] as TokenKey).id)).join('\n'));
    lines.starts.push(lines.keys.length);
    lines.keys.push(...indexes);
  }
  return lines;
}

/**
 * No id is empty or has a line break (token-id.ts), and none may: it would shift the lines behind it. A text
 * without characters has no lines.
 */
function lineOf(id: string): string {
  return id === '' || id.includes('\n') ? NO_TOKEN : id;
}
