/** Reads a token by one prepared statement per request: what the batched reader is held against. */
import { milliseconds } from '../../shared/postgres/milliseconds.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import type { BatchReader } from '../../shared/tokens/batch-reader.ts';
import {
  CVC_COLUMNS,
  JOIN_CVC,
  NOT_EXPIRED,
  TOKEN_COLUMNS,
  type TokenRow,
} from '../../shared/tokens/token-row.ts';

/** The same answer as the batched statement's, without anything that only a batch needs. */
const READ_ONE_TOKEN = {
  name: 'read-one-token',
  text: `
    SELECT tn.config_version, ${milliseconds('clock_now()')} AS now_ms, ${TOKEN_COLUMNS},
      ${CVC_COLUMNS}
    FROM tenants tn
    LEFT JOIN tokens t ON t.tenant_id = tn.id AND t.id = $2 AND ${NOT_EXPIRED} ${JOIN_CVC}
    WHERE tn.id = $1`,
};

type Row = { config_version: string; now_ms: number } & (TokenRow | { id: null });

export function createSingleReader(db: Queryable): BatchReader {
  const submit: BatchReader['submit'] = async ({ tenant_id, id }) => {
    const { rows } = await db.query<Row>({ ...READ_ONE_TOKEN, values: [tenant_id, id] });
    const [row] = rows;
    if (row === undefined) throw new Error('a tenant is not there');
    const { config_version, now_ms } = row;
    return { token: row.id === null ? undefined : (row as TokenRow), config_version, now_ms };
  };
  return { submit, submitAll: (keys) => Promise.all(keys.map(submit)) };
}
