/** The audit trail, in a partition per month, and the signed checkpoints that chain it. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE audit_log (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL DEFAULT gen_random_uuid(),
      created_at timestamptz NOT NULL,
      actor_type text COLLATE "C" NOT NULL,
      actor_id uuid,
      entity_type text COLLATE "C" NOT NULL,
      entity_id text COLLATE "C",
      operation text COLLATE "C" NOT NULL,
      -- Through which reactor or proxy a token was used, or whose script asked for it.
      via_type text COLLATE "C",
      via_id uuid,
      -- Where a token was at that moment.
      container text COLLATE "C",
      denied boolean NOT NULL,
      trace_id text COLLATE "C" NOT NULL,
      -- By transaction: checkpoints cover the rows of transactions that have all ended.
      position int8 NOT NULL,
      PRIMARY KEY (tenant_id, created_at, id)
    ) PARTITION BY RANGE (created_at);
    -- Rows of a month that nobody has made a partition for.
    CREATE TABLE audit_log_default PARTITION OF audit_log DEFAULT;
    CREATE INDEX audit_log_by_entity ON audit_log (tenant_id, entity_id, created_at, id);
    -- Rows of tokens are nearly all of them: they need no index to be found by their type.
    CREATE INDEX audit_log_by_type ON audit_log (tenant_id, entity_type, created_at, id)
      WHERE entity_type <> 'token';
    CREATE INDEX audit_log_by_position ON audit_log (position);

    -- Added to transaction ids, so that positions grow in a restored cluster too. One row.
    CREATE TABLE audit_positions (
      id integer PRIMARY KEY CHECK (id = 1),
      base int8 NOT NULL
    );
    INSERT INTO audit_positions (id, base) VALUES (1, 0);

    CREATE TABLE audit_checkpoints (
      number int8 PRIMARY KEY,
      -- It covers the rows from the checkpoint before it up to here, this one excluded.
      to_position int8 NOT NULL,
      row_count int8 NOT NULL,
      -- Rows of earlier months may be gone, by their age.
      kept_from date NOT NULL,
      created_at timestamptz NOT NULL,
      -- Over all of this, the digests of its parts, and the digest of the checkpoint before it.
      digest bytea NOT NULL,
      signature bytea NOT NULL
    );
    -- What a checkpoint covers, by tenant and month.
    CREATE TABLE audit_checkpoint_parts (
      tenant_id uuid NOT NULL,
      number int8 NOT NULL,
      month date NOT NULL,
      row_count int8 NOT NULL,
      digest bytea NOT NULL,
      PRIMARY KEY (tenant_id, number, month)
    );
    CREATE INDEX audit_checkpoint_parts_by_number ON audit_checkpoint_parts (number);
  `);
}
