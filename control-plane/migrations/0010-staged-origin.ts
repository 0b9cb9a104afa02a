/** By which right a staged token was created, once a patch has moved it. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- Of a new token: where it was created. Null for what was staged before there was this column.
    ALTER TABLE staged_tokens ADD COLUMN IF NOT EXISTS created_container text COLLATE "C";
  `);
}
