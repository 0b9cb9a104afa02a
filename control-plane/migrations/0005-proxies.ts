/** Proxies. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE proxies (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      name text NOT NULL,
      destination_url text NOT NULL,
      -- Shown again in every answer, so it is sealed; its HMAC is in key_directory.
      key_sealed bytea NOT NULL,
      require_auth boolean NOT NULL DEFAULT true,
      -- {code, code_version}: the version is random and new with every change of the code.
      request_transform jsonb,
      response_transform jsonb,
      -- May name an application that is gone: the transforms then run without one.
      application_id uuid,
      -- Names and values, often keys of other services; null when there are none.
      configuration_sealed bytea,
      leak_tripwire text NOT NULL DEFAULT 'report',
      created_by uuid,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      modified_by uuid,
      modified_at timestamptz,
      PRIMARY KEY (tenant_id, id)
    );
    -- Ciphertext does not compress: skip the attempt.
    ALTER TABLE proxies ALTER COLUMN configuration_sealed SET STORAGE EXTERNAL;
    CREATE INDEX proxies_newest ON proxies (tenant_id, created_at DESC, id DESC);
  `);
}
