/** What requests with an idempotency key were answered, and who is at work on one right now. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE idempotency_records (
      tenant_id uuid NOT NULL,
      -- HMAC of application, method, path and key under the tenant's search key.
      scope bytea NOT NULL,
      -- Status, headers and body; null while a lease is held.
      sealed bytea,
      -- The moment of the effect: completes an answer that was sealed before it.
      effect_at timestamptz,
      -- From when on it is not shown any more, since a cvc was opened for it; part of its seal. Null: as
      -- long as the row is there, or it has been erased already.
      due_at timestamptz,
      lease_id uuid,
      leased_until timestamptz,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      -- The guard: a second effect of a key cannot commit.
      PRIMARY KEY (tenant_id, scope)
    );
    ALTER TABLE idempotency_records ALTER COLUMN sealed SET STORAGE EXTERNAL;
    -- As tokens_due in 0008: for sweeps alone.
    CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at) WHERE scope > '';
    CREATE INDEX idempotency_records_due ON idempotency_records (due_at) WHERE due_at IS NOT NULL;
  `);
}
