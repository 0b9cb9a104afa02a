/**
 * What the statement that inserts tokens does besides when requests have idempotency keys: it tells
 * twins, and records the keys with the tokens that are really inserted.
 *
 * The lock makes the 409 of a twin under way. But the statement's snapshot is older than the lock, so a
 * twin that ended in between is found by the primary key alone: the plain INSERT fails, and with it the
 * whole statement.
 */
import { tryScope } from '../idempotency/record-store.ts';

/** Kept with the insert of a token. */
export interface InsertRecord {
  readonly scope: string;
  /** The answer; without it the record names the token, if that may be named. */
  readonly sealed: Buffer | undefined;
  /** Whether the answer shows the token's mask. */
  readonly shows_mask: boolean;
}

/** Parts of the statement; parameters $20 to $22. */
export const RECORD_PARTS = {
  input: { parameters: ', $20::uuid[], $21::bytea[]', names: ', scope, answer' },
  problems: `
        WHEN i.scope IS NOT NULL AND NOT ${tryScope('i.scope')} THEN 'in_progress'
        WHEN i.scope IS NOT NULL AND (
          SELECT true FROM idempotency_records r
          WHERE r.tenant_id = i.tenant_id AND r.scope = i.scope LIMIT 1
        ) THEN 'answered'`,
  token: {
    name: ', record_scope',
    value: ', CASE WHEN i.answer IS NULL THEN i.scope END',
  },
  // Nearly all are of the first kind: nothing is joined for them.
  records: `,
    named AS (
      INSERT INTO idempotency_records (tenant_id, scope, token_id, shows_mask, created_at)
      SELECT t.tenant_id, t.record_scope, t.id, t.record_scope <> ALL ($22::uuid[]), t.created_at
      FROM inserted t WHERE t.record_scope IS NOT NULL
    ),
    answers AS (
      INSERT INTO idempotency_records (tenant_id, scope, sealed, effect_at, created_at)
      SELECT i.tenant_id, i.scope, i.answer, t.created_at, t.created_at
      FROM input i JOIN inserted t ON t.tenant_id = i.tenant_id AND t.id = i.id
      WHERE i.answer IS NOT NULL
    )`,
};

/** The parameters, of the records of inserts in their order. */
export function recordValues(records: readonly (InsertRecord | undefined)[]): unknown[] {
  const showingNothing = records.filter((record) => record?.shows_mask === false);
  return [
    records.map((record) => record?.scope),
    records.map((record) => record?.sealed),
    showingNothing.map((record) => record?.scope),
  ];
}
