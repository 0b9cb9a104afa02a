/**
 * Records of idempotency keys may name the token that was created instead of holding its answer, and
 * their scopes are half as long. What was sealed for the longer scopes opens no more, so the records
 * there are go: no version that has made any was released.
 */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    TRUNCATE idempotency_records;
    DROP INDEX IF EXISTS idempotency_records_by_age;
    ALTER TABLE idempotency_records
      -- The first 128 bits of the HMAC. Of a fixed length: the guard's index costs less.
      ALTER COLUMN scope TYPE uuid USING NULL,
      -- The token whose creation is the answer, as long as it is as it was created. Then there is
      -- nothing sealed, and no lease.
      ADD COLUMN IF NOT EXISTS token_id text COLLATE "C",
      -- Whether the answer shows the token's mask.
      ADD COLUMN IF NOT EXISTS shows_mask boolean;
    -- As tokens_due in 0008: for sweeps alone.
    CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at)
      WHERE scope > '00000000-0000-0000-0000-000000000000';

    -- The record that names the token, if it still does; it is asked whether it does. Null once the
    -- token was changed.
    ALTER TABLE tokens ADD COLUMN IF NOT EXISTS record_scope uuid;
    -- What goes by the clock is never named: nobody would be there to write its answer down. Without a
    -- look at the rows there are, which have no scope.
    ALTER TABLE tokens DROP CONSTRAINT IF EXISTS tokens_named_stay;
    ALTER TABLE tokens ADD CONSTRAINT tokens_named_stay
      CHECK (record_scope IS NULL OR expires_at IS NULL) NOT VALID;
  `);
}
