/** Opens transactions of the API, concurrent ones in one statement: each would wait for a commit alone. */
import { randomUUID } from 'node:crypto';
import type { ConfigReading } from '../config-entries/config-version.ts';
import { type Batcher, createBatcher } from '../postgres/batcher.ts';
import { isDatabaseUnavailable } from '../postgres/database-error.ts';
import { milliseconds } from '../postgres/milliseconds.ts';
import type { Queryable } from '../postgres/pool.ts';

/** An open transaction is rolled back by itself after this (facts 8). */
export const TRANSACTION_LIFETIME_S = 3_600;
/**
 * Transactions that one application may have open: what each may hold is bounded, too. Not the tenant:
 * the key of a public application is everybody's, and must not keep the others from theirs.
 */
export const OPEN_TRANSACTIONS_MAX = 1_000;

export interface Transaction {
  id: string;
  created_by: string;
  created_at_ms: number;
  expires_at_ms: number;
}

/** Whose it will be, and at which configuration that was decided. */
export interface Opener {
  readonly tenant_id: string;
  readonly application_id: string;
  readonly config_version: string;
}

/** `transaction` is absent when the version is another, or too many are open already. */
export interface Opening {
  reading: ConfigReading;
  transaction: Transaction | undefined;
}

export type TransactionOpener = Batcher<Opener, Opening>;

const CREATED_AT = `date_trunc('milliseconds', clock_now())`;

export const OPEN_TRANSACTIONS = {
  name: 'open-transactions',
  text: `
    WITH input AS MATERIALIZED (
      SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[]) WITH ORDINALITY
        AS i (tenant_id, id, application_id, config_version, n)
    ),
    owners AS MATERIALIZED (
      SELECT w.tenant_id, w.application_id, t.config_version, o.count
      FROM (SELECT DISTINCT tenant_id, application_id FROM input) w
      LEFT JOIN LATERAL (
        SELECT config_version FROM tenants WHERE id = w.tenant_id LIMIT 1
      ) t ON true
      CROSS JOIN LATERAL (
        SELECT count(*) AS count FROM (
          SELECT 1 FROM transactions WHERE tenant_id = w.tenant_id
            AND created_by = w.application_id AND state = 'open'
            AND expires_at > clock_now() LIMIT ${OPEN_TRANSACTIONS_MAX}
        ) counted
      ) o
    ),
    gate AS MATERIALIZED (
      SELECT i.*, t.config_version AS current_version, i.config_version = t.config_version
        AND t.count + row_number() OVER (PARTITION BY i.tenant_id, i.application_id ORDER BY i.n)
          <= ${OPEN_TRANSACTIONS_MAX} AS passes
      FROM input i JOIN owners t
        ON t.tenant_id = i.tenant_id AND t.application_id = i.application_id
    ),
    opened AS (
      INSERT INTO transactions (tenant_id, id, created_by, created_at, expires_at)
      SELECT tenant_id, id, application_id, ${CREATED_AT},
        ${CREATED_AT} + interval '${TRANSACTION_LIFETIME_S} seconds'
      FROM gate WHERE passes
    )
    SELECT n::int4 AS n, current_version AS config_version,
      ${milliseconds('clock_now()')} AS now_ms,
      CASE WHEN passes THEN ${milliseconds(CREATED_AT)} END AS created_at_ms
    FROM gate`,
};

/** Opens those for which the tenant's configuration is the one decided on. */
export async function openTransactions(
  db: Queryable,
  openers: readonly Opener[],
): Promise<Opening[]> {
  const ids = openers.map(() => randomUUID());
  const { rows } = await db.query<ConfigReading & { n: number; created_at_ms: number | null }>({
    ...OPEN_TRANSACTIONS,
    values: [
      openers.map(({ tenant_id }) => tenant_id),
      ids,
      openers.map(({ application_id }) => application_id),
      openers.map(({ config_version }) => config_version),
    ],
  });
  const openings = new Array<Opening>(openers.length);
  for (const { n, created_at_ms, ...reading } of rows) {
    const id = ids[n - 1] ?? '';
    const created_by = openers[n - 1]?.application_id ?? '';
    const transaction =
      created_at_ms === null
        ? undefined
        : {
            ...{ id, created_by, created_at_ms },
            expires_at_ms: created_at_ms + TRANSACTION_LIFETIME_S * 1_000,
          };
    openings[n - 1] = { reading, transaction };
  }
  return openings;
}

export function createTransactionOpener(db: Queryable): TransactionOpener {
  return createBatcher<Opener, Opening>({
    run: (openers) => openTransactions(db, openers),
    isOutage: isDatabaseUnavailable,
  });
}
