/** Installation secrets, tenants with their keys, and the record of configuration changes. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- The one clock (design section 4). The offset is set for test sessions only.
    CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT statement_timestamp() + make_interval(secs => coalesce(
         nullif(current_setting('sallyport.clock_offset_seconds', true), ''), '0')::float8) $$;

    CREATE TABLE installation_keys (
      version integer PRIMARY KEY,
      kek_id text NOT NULL,
      wrapped bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_now()
    );
    CREATE TABLE installation_secrets (
      name text PRIMARY KEY,
      wrapped bytea NOT NULL
    );

    CREATE TABLE tenants (
      id uuid PRIMARY KEY,
      name text NOT NULL,
      owner_id uuid,
      settings jsonb NOT NULL DEFAULT '{}',
      -- Random, so that it is not reused after a restore. Only equality is ever asked.
      config_version uuid NOT NULL,
      created_by uuid,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      modified_by uuid,
      modified_at timestamptz
    );

    CREATE TABLE tenant_keys (
      tenant_id uuid NOT NULL,
      purpose text NOT NULL,
      version integer NOT NULL,
      wrapped bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      PRIMARY KEY (tenant_id, purpose, version)
    );

    -- From previous_version one walks back to the version a process knows.
    CREATE TABLE config_changes (
      tenant_id uuid NOT NULL,
      version uuid NOT NULL,
      kind text NOT NULL,
      id text NOT NULL,
      previous_version uuid NOT NULL,
      changed_at timestamptz NOT NULL DEFAULT clock_now(),
      PRIMARY KEY (tenant_id, version, kind, id)
    );

    -- Deleted tenants whose rows are still being removed, in batches.
    CREATE TABLE tenant_deletions (
      tenant_id uuid PRIMARY KEY,
      deleted_at timestamptz NOT NULL DEFAULT clock_now()
    );
  `);
}
