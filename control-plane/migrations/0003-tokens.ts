/** Tokens, their blind indexes, short-lived cvc values and counts. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE tokens (
      tenant_id uuid NOT NULL,
      id text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      container text COLLATE "C" NOT NULL,
      -- JSON texts as they are answered. Never queried: filters go through token_terms.
      metadata json,
      fingerprint text COLLATE "C",
      fingerprint_expression text,
      search_indexes json NOT NULL DEFAULT '[]',
      -- data, mask and the evaluated mask, sealed together.
      sealed bytea NOT NULL,
      expires_at timestamptz,
      created_by uuid NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      modified_by uuid,
      modified_at timestamptz,
      PRIMARY KEY (tenant_id, id)
    );
    -- Ciphertext does not compress: skip the attempt.
    ALTER TABLE tokens ALTER COLUMN sealed SET STORAGE EXTERNAL;
    CREATE INDEX tokens_newest ON tokens (tenant_id, created_at DESC, id DESC);
    CREATE INDEX tokens_newest_of_kind
      ON tokens (tenant_id, container, type, created_at DESC, id DESC);
    -- Partial, so that no other lookup can be planned on it.
    CREATE INDEX tokens_fingerprint ON tokens (tenant_id, fingerprint)
      WHERE fingerprint IS NOT NULL;
    CREATE INDEX tokens_expiring ON tokens (tenant_id, expires_at) WHERE expires_at IS NOT NULL;

    -- Blind indexes of search values and metadata: HMACs under the tenant's search key.
    CREATE TABLE token_terms (
      tenant_id uuid NOT NULL,
      token_id text COLLATE "C" NOT NULL,
      hash bytea NOT NULL,
      PRIMARY KEY (tenant_id, token_id, hash)
    );
    CREATE INDEX token_terms_by_hash ON token_terms (tenant_id, hash, token_id);

    -- No WAL, no standby, no point-in-time copy of a card verification code.
    CREATE UNLOGGED TABLE token_cvcs (
      tenant_id uuid NOT NULL,
      token_id text COLLATE "C" NOT NULL,
      sealed bytea NOT NULL,
      due_at timestamptz NOT NULL,
      PRIMARY KEY (tenant_id, token_id)
    );

    -- A list's total is the folded counts plus the deltas not folded yet: never a counted scan,
    -- and never one row that all writers wait for.
    CREATE TABLE token_counts (
      tenant_id uuid NOT NULL,
      container text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      count bigint NOT NULL,
      PRIMARY KEY (tenant_id, container, type)
    );
    CREATE TABLE token_count_deltas (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL DEFAULT gen_random_uuid(),
      container text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      delta integer NOT NULL,
      PRIMARY KEY (tenant_id, id)
    );
  `);
}
