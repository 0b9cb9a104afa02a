/**
 * Makes what a transaction has staged live: all of it in the caller's Postgres transaction, or, when
 * one token cannot be, nothing. Sealed values are moved as they are: they are bound to tenant, id,
 * type, container and expiry, not to the transaction that staged them.
 */
import { ApiError } from '../errors.ts';
import type { Queryable } from '../postgres/pool.ts';
import { NOT_EXPIRED } from '../tokens/token-row.ts';
import { DELETE_PARTS } from '../tokens/token-store.ts';
import type { StagedOperation } from './staged-tokens.ts';
import { clearStaged, type TransactionKey } from './transaction-store.ts';

type TransactionId = Pick<TransactionKey, 'tenant_id' | 'id'>;

/** What a transaction is about to do somewhere. */
export interface StagedKind {
  operation: StagedOperation;
  container: string;
  /** Of tokens that are live: where they are now. */
  previous_container: string | null;
}

/** Each kind of change it has staged, once. */
async function stagedKinds(
  client: Queryable,
  { tenant_id, id }: TransactionId,
): Promise<StagedKind[]> {
  const { rows } = await client.query<StagedKind>({
    name: 'staged-kinds',
    text: `
      SELECT DISTINCT operation, container, previous_container FROM staged_tokens
      WHERE tenant_id = $1 AND transaction_id = $2`,
    values: [tenant_id, id],
  });
  return rows;
}

const OF_TRANSACTION = 's.tenant_id = $1 AND s.transaction_id = $2';

/**
 * No statement below joins a table: what is staged is mostly little, a plan made then is kept, and a
 * join could come to compare every token with every other. Rows are looked up by key, one by one.
 */
const STAGED_ROW = (id: string): string =>
  `FROM staged_tokens s WHERE ${OF_TRANSACTION} AND s.id = ${id}`;

/** Of expired tokens in the way of new ones, too: they free their ids. */
const DELETE_LIVE = {
  name: 'commit-deletions',
  text: `
    WITH deleted AS (
      DELETE FROM tokens t WHERE t.tenant_id = $1 AND t.id = ANY (ARRAY(
        SELECT s.id FROM staged_tokens s
        WHERE ${OF_TRANSACTION} AND s.operation IN ('delete', 'replace')
        UNION ALL
        SELECT s.id FROM staged_tokens s CROSS JOIN LATERAL (
          SELECT t.expires_at FROM tokens t WHERE t.tenant_id = $1 AND t.id = s.id LIMIT 1
        ) t
        WHERE ${OF_TRANSACTION} AND s.operation = 'create' AND NOT ${NOT_EXPIRED}))
      RETURNING t.tenant_id, t.id, t.container, t.type
    ), ${DELETE_PARTS}
    SELECT d.id, d.container, 'delete' AS operation FROM deleted d
    WHERE (SELECT s.operation ${STAGED_ROW('d.id')}) <> 'create'`,
};

const CHANGED_COLUMNS = [
  ...['container', 'metadata', 'search_indexes', 'fingerprint', 'fingerprint_expression'],
  ...['sealed', 'expires_at', 'modified_by', 'modified_at'],
];

const UPDATE_LIVE = {
  name: 'commit-updates',
  text: `
    WITH changed AS (
      UPDATE tokens t SET (${CHANGED_COLUMNS.join(', ')}) = (
        SELECT ${CHANGED_COLUMNS.map((column) => `s.${column}`).join(', ')} ${STAGED_ROW('t.id')})
      WHERE t.tenant_id = $1 AND ${NOT_EXPIRED} AND t.id = ANY (ARRAY(
        SELECT s.id FROM staged_tokens s WHERE ${OF_TRANSACTION} AND s.operation = 'update'))
      RETURNING t.id, t.type, t.container, t.expires_at
    ),
    gone_terms AS (
      DELETE FROM token_terms x WHERE x.tenant_id = $1
        AND x.token_id = ANY (ARRAY(SELECT id FROM changed))
        AND x.hash <> ALL ((SELECT s.terms ${STAGED_ROW('x.token_id')})::bytea[])
    ),
    terms AS (
      INSERT INTO token_terms (tenant_id, token_id, hash)
      SELECT $1, c.id, x.hash FROM changed c
      CROSS JOIN LATERAL (SELECT s.terms ${STAGED_ROW('c.id')} LIMIT 1) s
      CROSS JOIN unnest(s.terms) AS x (hash)
      ON CONFLICT DO NOTHING
    ),
    cvcs AS MATERIALIZED (
      SELECT * FROM staged_cvcs WHERE tenant_id = $1 AND transaction_id = $2
        AND token_id = ANY (ARRAY(SELECT id FROM changed))
    ),
    gone_cvcs AS (
      DELETE FROM token_cvcs WHERE tenant_id = $1 AND token_id = ANY (ARRAY(
        SELECT token_id FROM cvcs WHERE sealed IS NULL))
    ),
    new_cvcs AS (
      INSERT INTO token_cvcs (tenant_id, token_id, sealed, due_at)
      SELECT tenant_id, token_id, sealed, due_at FROM cvcs WHERE sealed IS NOT NULL
      ON CONFLICT (tenant_id, token_id)
        DO UPDATE SET sealed = excluded.sealed, due_at = excluded.due_at
    ),
    deltas AS (
      INSERT INTO token_count_deltas (tenant_id, container, type, delta)
      SELECT $1, d.container, c.type, sum(d.delta) FROM changed c
      CROSS JOIN LATERAL (SELECT s.previous_container ${STAGED_ROW('c.id')} LIMIT 1) s
      CROSS JOIN LATERAL (VALUES (s.previous_container, -1), (c.container, 1)) d (container, delta)
      WHERE c.container <> s.previous_container GROUP BY 1, 2, 3
    )
    SELECT c.id, c.container, 'update' AS operation, (
      SELECT count(*) FROM staged_tokens t
      WHERE t.tenant_id = $1 AND t.transaction_id = $2 AND t.operation = 'update' AND ${NOT_EXPIRED}
    ) > (SELECT count(*) FROM changed t WHERE ${NOT_EXPIRED}) AS failed
    FROM (SELECT 1) AS one LEFT JOIN changed c ON true`,
};

/**
 * Inserts the new tokens whose ids are free, and clears what it has inserted: for a transaction of
 * creates alone that is the whole commit. The token of a replacement is in its own way until
 * `DELETE_LIVE` has run.
 */
const INSERT_NEW = {
  name: 'commit-creates',
  text: `
    WITH inserted AS (
      INSERT INTO tokens (tenant_id, id, type, container, metadata, search_indexes, fingerprint,
        fingerprint_expression, sealed, expires_at, created_by, created_at, modified_by,
        modified_at)
      SELECT s.tenant_id, s.id, s.type, s.container, s.metadata, s.search_indexes, s.fingerprint,
        s.fingerprint_expression, s.sealed, s.expires_at, s.created_by, s.created_at,
        s.modified_by, s.modified_at
      FROM staged_tokens s WHERE ${OF_TRANSACTION} AND s.operation IN ('create', 'replace')
      ORDER BY s.id
      ON CONFLICT (tenant_id, id) DO NOTHING
      RETURNING tenant_id, id, container, type
    ),
    cleared AS (
      DELETE FROM staged_tokens s
      WHERE ${OF_TRANSACTION} AND s.id = ANY (ARRAY(SELECT id FROM inserted))
      RETURNING s.id, s.terms
    ),
    terms AS (
      INSERT INTO token_terms (tenant_id, token_id, hash)
      SELECT $1, c.id, x.hash FROM cleared c CROSS JOIN unnest(c.terms) AS x (hash)
      ON CONFLICT DO NOTHING
    ),
    cleared_cvcs AS (
      DELETE FROM staged_cvcs v WHERE v.tenant_id = $1 AND v.transaction_id = $2
        AND v.token_id = ANY (ARRAY(SELECT id FROM inserted))
      RETURNING v.*
    ),
    cvcs AS (
      INSERT INTO token_cvcs (tenant_id, token_id, sealed, due_at)
      SELECT tenant_id, token_id, sealed, due_at FROM cleared_cvcs WHERE sealed IS NOT NULL
      ON CONFLICT (tenant_id, token_id)
        DO UPDATE SET sealed = excluded.sealed, due_at = excluded.due_at
    ),
    locks AS (DELETE FROM token_locks WHERE tenant_id = $1 AND transaction_id = $2),
    deltas AS (
      INSERT INTO token_count_deltas (tenant_id, container, type, delta)
      SELECT tenant_id, container, type, count(*) FROM inserted GROUP BY 1, 2, 3
    )
    SELECT i.id, i.container, 'create' AS operation, n.changes, n.creates
    FROM (
      SELECT count(*)::int4 AS changes,
        count(*) FILTER (WHERE operation IN ('create', 'replace'))::int4 AS creates
      FROM staged_tokens s WHERE ${OF_TRANSACTION}
    ) n LEFT JOIN inserted i ON true`,
};

/** A token that a commit has changed. */
export interface CommittedToken {
  readonly id: string;
  readonly container: string;
  readonly operation: 'create' | 'update' | 'delete';
}

interface Insertion {
  inserted: CommittedToken[];
  /** What was staged when it began: everything, and new tokens. */
  changes: number;
  creates: number;
}

async function insertNew(client: Queryable, values: string[]): Promise<Insertion> {
  const { rows } = await client.query<NoneOr<CommittedToken> & Omit<Insertion, 'inserted'>>({
    ...INSERT_NEW,
    values,
  });
  const [first] = rows;
  if (first === undefined) throw new Error('a query without FROM rows');
  const { changes, creates } = first;
  const inserted = rows.flatMap(({ id, container }): CommittedToken[] =>
    id === null || container === null ? [] : [{ id, container, operation: 'create' }],
  );
  return { inserted, changes, creates };
}

/**
 * Applies and clears what is staged; `permit` throws for what its application may not do any more. The
 * caller has ended the transaction as committed in the same Postgres transaction, and rolls that back
 * when this throws: 409 when the id of a new token has been taken, or an updated token has expired,
 * since they were staged.
 */
export async function applyStaged(
  client: Queryable,
  transaction: TransactionId,
  permit: (kind: StagedKind) => void,
): Promise<CommittedToken[]> {
  const values = [transaction.tenant_id, transaction.id];
  const { inserted, changes } = await insertNew(client, values);
  for (const container of new Set(inserted.map((token) => token.container))) {
    permit({ operation: 'create', container, previous_container: null });
  }
  if (changes === inserted.length) return inserted;
  for (const kind of await stagedKinds(client, transaction)) permit(kind);
  const deleted = await client.query<CommittedToken>({ ...DELETE_LIVE, values });
  const updated = await updateLive(client, values);
  const last = await insertNew(client, values);
  if (last.inserted.length < last.creates) throw cannotCommit();
  await clearStaged(client, transaction);
  return [...inserted, ...deleted.rows, ...updated, ...last.inserted];
}

/**
 * A token whose time is over by its own change need not be there. Of the others, one that has expired
 * since it was changed lets nothing be committed.
 */
async function updateLive(client: Queryable, values: string[]): Promise<CommittedToken[]> {
  const { rows } = await client.query<NoneOr<CommittedToken> & { failed: boolean }>({
    ...UPDATE_LIVE,
    values,
  });
  if (rows[0]?.failed !== false) throw cannotCommit();
  return rows.flatMap(({ id, container }): CommittedToken[] =>
    id === null || container === null ? [] : [{ id, container, operation: 'update' }],
  );
}

/** A row that is there for what stands beside it, also when it tells of nothing. */
type NoneOr<T> = { [M in keyof T]: T[M] | null };

function cannotCommit(): ApiError {
  const detail =
    'A token of the transaction has expired, or the id of a new one has been taken; ' +
    'nothing was changed, and the transaction is still open';
  return new ApiError('conflict', detail);
}
