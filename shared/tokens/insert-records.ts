/**
 * What the statement that inserts tokens does besides when requests have idempotency keys: it tells
 * twins, and keeps the answers with the tokens that are really inserted.
 *
 * The lock makes the 409 of a twin under way. But the statement's snapshot is older than the lock, so a
 * twin that ended in between is found by the primary key alone: the plain INSERT fails, and with it the
 * whole statement.
 */
import { scopeLock } from '../idempotency/record-store.ts';

/** Kept with the insert of a token. */
export interface InsertRecord {
  readonly scope: Buffer;
  readonly sealed: Buffer;
}

const SCOPE_BYTES = 32;

/** Parts of the statement; parameters $20 to $24. */
export const RECORD_PARTS = {
  // One value of bytes for all: as an array of them they would be written and read as hex.
  input: `
    keyed AS MATERIALIZED (
      SELECT k.n, k.lock, substring($24::bytea FROM k.start FOR ${SCOPE_BYTES}) AS scope,
        substring($24::bytea FROM k.start + ${SCOPE_BYTES} FOR k.length) AS sealed
      FROM unnest($20::int4[], $21::int8[], $22::int4[], $23::int4[]) AS k (n, lock, start, length)
    ),`,
  problems: `
        WHEN k.n IS NOT NULL AND NOT pg_try_advisory_xact_lock(k.lock) THEN 'in_progress'
        WHEN k.n IS NOT NULL AND (
          SELECT true FROM idempotency_records r
          WHERE r.tenant_id = i.tenant_id AND r.scope = k.scope LIMIT 1
        ) THEN 'answered'`,
  join: `
      LEFT JOIN keyed k ON k.n = i.n`,
  records: `,
    records AS (
      INSERT INTO idempotency_records (tenant_id, scope, sealed, effect_at)
      SELECT i.tenant_id, k.scope, k.sealed, t.created_at
      FROM keyed k JOIN input i ON i.n = k.n
      JOIN inserted t ON t.tenant_id = i.tenant_id AND t.id = i.id
    )`,
};

/** The parameters, of the records of inserts in their order. */
export function recordValues(records: readonly (InsertRecord | undefined)[]): unknown[] {
  const [rows, locks, starts, lengths]: [number[], string[], number[], number[]] = [[], [], [], []];
  const bytes: Buffer[] = [];
  let start = 1;
  records.forEach((record, index) => {
    if (record === undefined) return;
    const { scope, sealed } = record;
    rows.push(index + 1);
    locks.push(scopeLock(scope));
    starts.push(start);
    lengths.push(sealed.length);
    bytes.push(scope, sealed);
    start += scope.length + sealed.length;
  });
  return [rows, locks, starts, lengths, Buffer.concat(bytes)];
}
