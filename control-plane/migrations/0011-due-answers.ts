/** Answers that must not be kept for the whole day, since a cvc was opened for them. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  for (const table of ['idempotency_records', 'reactor_results']) {
    await knex.raw(`
      -- From when on what was answered is not shown any more; part of its seal. Null: as long as the
      -- row is there, or it has been erased already.
      ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS due_at timestamptz;
      CREATE INDEX IF NOT EXISTS ${table}_due ON ${table} (due_at) WHERE due_at IS NOT NULL;
    `);
  }
}
