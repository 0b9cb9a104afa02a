/** Applications, their keys, and the directory that finds a tenant by the hash of a key. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE applications (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      name text NOT NULL,
      type text NOT NULL,
      permissions text[] NOT NULL DEFAULT '{}',
      rules jsonb NOT NULL DEFAULT '[]',
      expires_at timestamptz,
      created_by uuid,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      modified_by uuid,
      modified_at timestamptz,
      PRIMARY KEY (tenant_id, id)
    );
    CREATE INDEX applications_newest ON applications (tenant_id, created_at DESC, id DESC);

    CREATE TABLE application_keys (
      tenant_id uuid NOT NULL,
      application_id uuid NOT NULL,
      id uuid NOT NULL,
      -- HMAC-SHA-256 of the key under the installation's pepper.
      hash bytea NOT NULL,
      created_by uuid,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      PRIMARY KEY (tenant_id, application_id, id)
    );

    -- The one place looked up before the tenant is known (design section 1.2).
    CREATE TABLE key_directory (
      hash bytea PRIMARY KEY,
      tenant_id uuid NOT NULL,
      kind text NOT NULL,
      id uuid NOT NULL
    );
    CREATE INDEX key_directory_owner ON key_directory (tenant_id, kind, id);
  `);
}
