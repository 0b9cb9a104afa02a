/** Transactions of the API: what they have staged, and the tokens they hold until they end. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE transactions (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      -- open, committed, rolled_back; expired: as rolled back, but not cleared away yet. An open one
      -- past expires_at has ended too, whether or not somebody has noted it.
      state text COLLATE "C" NOT NULL DEFAULT 'open',
      created_by uuid NOT NULL,
      created_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL,
      finished_at timestamptz,
      PRIMARY KEY (tenant_id, id)
    );
    CREATE INDEX transactions_open ON transactions (tenant_id, created_by, expires_at)
      WHERE state = 'open';
    CREATE INDEX transactions_due ON transactions (expires_at)
      WHERE state IN ('open', 'expired');
    CREATE INDEX transactions_finished ON transactions (finished_at)
      WHERE finished_at IS NOT NULL;

    -- Which token an open transaction has changed, or which id it has taken for a new one: nobody
    -- else may change or take it until the transaction ends.
    CREATE TABLE token_locks (
      tenant_id uuid NOT NULL,
      token_id text COLLATE "C" NOT NULL,
      transaction_id uuid NOT NULL,
      PRIMARY KEY (tenant_id, token_id)
    );
    -- As tokens_due in 0008: for what a transaction holds alone. While the table is empty a lookup of one
    -- token could be planned on it, for good.
    CREATE INDEX token_locks_by_transaction ON token_locks (tenant_id, transaction_id)
      WHERE token_id > '';

    -- Tokens as they will be once the transaction commits.
    CREATE TABLE staged_tokens (
      tenant_id uuid NOT NULL,
      transaction_id uuid NOT NULL,
      id text COLLATE "C" NOT NULL,
      -- create, update, delete, or replace: delete and then create.
      operation text COLLATE "C" NOT NULL,
      -- Of the token that is updated or deleted: where it counts now.
      previous_container text COLLATE "C",
      type text COLLATE "C" NOT NULL,
      container text COLLATE "C" NOT NULL,
      -- Of a new token: where it was created, and by which right, once a patch has moved it.
      created_container text COLLATE "C",
      metadata json,
      fingerprint text COLLATE "C",
      fingerprint_expression text,
      search_indexes json NOT NULL DEFAULT '[]',
      sealed bytea NOT NULL,
      terms bytea[] NOT NULL DEFAULT '{}',
      expires_at timestamptz,
      created_by uuid NOT NULL,
      created_at timestamptz NOT NULL,
      modified_by uuid,
      modified_at timestamptz,
      PRIMARY KEY (tenant_id, transaction_id, id)
    );
    ALTER TABLE staged_tokens ALTER COLUMN sealed SET STORAGE EXTERNAL;

    -- As token_cvcs: no WAL. A null value removes the live one.
    CREATE UNLOGGED TABLE staged_cvcs (
      tenant_id uuid NOT NULL,
      transaction_id uuid NOT NULL,
      token_id text COLLATE "C" NOT NULL,
      sealed bytea,
      due_at timestamptz,
      PRIMARY KEY (tenant_id, transaction_id, token_id)
    );
  `);
}
