/** What a commit does to the live tokens, a statement for each kind of change. */
import { NOT_EXPIRED } from '../tokens/token-row.ts';
import { DELETE_PARTS } from '../tokens/token-store.ts';
import { ANY_TOKEN } from './transaction-store.ts';

/**
 * Tokens of one statement that writes index terms: each token may have scores of them, and those of a full
 * transaction would take near the time limit of a statement. Deletions of as many take a tenth of that.
 */
export const BATCH_TOKENS = 250;

const OF_TRANSACTION = 's.tenant_id = $1 AND s.transaction_id = $2';

/** The next ones after the id `$3`. */
const NEXT = `s.id > $3 ORDER BY s.id LIMIT ${BATCH_TOKENS}`;
const OF_BATCH = "count(*)::int4 AS tried, coalesce(max(id), '') AS last";

/**
 * No statement below joins a table: what is staged is mostly little, a plan made then is kept, and a
 * join could come to compare every token with every other. Rows are looked up by key, one by one.
 */
const STAGED_ROW = (id: string): string =>
  `FROM staged_tokens s WHERE ${OF_TRANSACTION} AND s.id = ${id}`;

/**
 * Of expired tokens in the way of new ones, too: they free their ids. Rows are locked in the order of the
 * ids first: a deletion takes them as they lie, and others that free the same ids would wait crosswise.
 */
export const DELETE_LIVE = {
  name: 'commit-deletions',
  text: `
    WITH deleted AS (
      DELETE FROM tokens t WHERE t.tenant_id = $1 AND t.id = ANY (ARRAY(
        SELECT l.id FROM tokens l WHERE l.tenant_id = $1 AND l.id = ANY (ARRAY(
          SELECT s.id FROM staged_tokens s
          WHERE ${OF_TRANSACTION} AND s.operation IN ('delete', 'replace')
          UNION ALL
          SELECT s.id FROM staged_tokens s CROSS JOIN LATERAL (
            SELECT t.expires_at FROM tokens t WHERE t.tenant_id = $1 AND t.id = s.id LIMIT 1
          ) t
          WHERE ${OF_TRANSACTION} AND s.operation = 'create' AND NOT ${NOT_EXPIRED}))
        ORDER BY l.id FOR UPDATE))
      RETURNING t.tenant_id, t.id, t.container, t.type
    ), ${DELETE_PARTS}
    SELECT d.id, d.container, 'delete' AS operation FROM deleted d
    WHERE (SELECT s.operation ${STAGED_ROW('d.id')}) <> 'create'`,
};

const CHANGED_COLUMNS = [
  ...['container', 'metadata', 'search_indexes', 'fingerprint', 'fingerprint_expression'],
  ...['sealed', 'expires_at', 'modified_by', 'modified_at'],
];

export const UPDATE_LIVE = {
  name: 'commit-updates',
  text: `
    WITH batch AS MATERIALIZED (
      SELECT s.id, s.expires_at FROM staged_tokens s
      WHERE ${OF_TRANSACTION} AND s.operation = 'update' AND ${NEXT}
    ),
    changed AS (
      UPDATE tokens t SET (${CHANGED_COLUMNS.join(', ')}) = (
        SELECT ${CHANGED_COLUMNS.map((column) => `s.${column}`).join(', ')} ${STAGED_ROW('t.id')}),
        record_scope = NULL
      WHERE t.tenant_id = $1 AND ${NOT_EXPIRED} AND t.id = ANY (ARRAY(SELECT id FROM batch))
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
    SELECT c.id, c.container, n.tried, n.last,
      n.lasting > (SELECT count(*) FROM changed t WHERE ${NOT_EXPIRED}) AS failed
    FROM (
      SELECT ${OF_BATCH}, count(*) FILTER (WHERE ${NOT_EXPIRED}) AS lasting FROM batch t
    ) n LEFT JOIN changed c ON true`,
};

/**
 * Inserts the new tokens whose ids are free, and clears what it has inserted: for a transaction of
 * creates alone that is the whole commit. The token of a replacement is in its own way until
 * `DELETE_LIVE` has run.
 */
export const INSERT_NEW = {
  name: 'commit-creates',
  text: `
    WITH batch AS MATERIALIZED (
      SELECT * FROM staged_tokens s
      WHERE ${OF_TRANSACTION} AND s.operation IN ('create', 'replace') AND ${NEXT}
    ),
    inserted AS (
      INSERT INTO tokens (tenant_id, id, type, container, metadata, search_indexes, fingerprint,
        fingerprint_expression, sealed, expires_at, created_by, created_at, modified_by,
        modified_at)
      SELECT s.tenant_id, s.id, s.type, s.container, s.metadata, s.search_indexes, s.fingerprint,
        s.fingerprint_expression, s.sealed, s.expires_at, s.created_by, s.created_at,
        s.modified_by, s.modified_at
      FROM batch s ORDER BY s.id
      ON CONFLICT (tenant_id, id) DO NOTHING
      RETURNING tenant_id, id, container, type
    ),
    cleared AS (
      DELETE FROM staged_tokens s
      WHERE ${OF_TRANSACTION} AND s.id = ANY (ARRAY(SELECT id FROM inserted))
      RETURNING s.id, s.container, s.created_container, s.terms
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
    locks AS (
      DELETE FROM token_locks WHERE tenant_id = $1 AND transaction_id = $2 AND ${ANY_TOKEN}
    ),
    deltas AS (
      INSERT INTO token_count_deltas (tenant_id, container, type, delta)
      SELECT tenant_id, container, type, count(*) FROM inserted GROUP BY 1, 2, 3
    )
    SELECT c.id, c.container, c.created_container, b.*, n.*
    FROM (SELECT ${OF_BATCH} FROM batch) b CROSS JOIN (
      SELECT count(*)::int4 AS changes,
        count(*) FILTER (WHERE operation IN ('create', 'replace'))::int4 AS creates
      FROM staged_tokens s WHERE ${OF_TRANSACTION}
    ) n LEFT JOIN cleared c ON true`,
};
