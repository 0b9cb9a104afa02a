/** Reactor formulas and reactors. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE reactor_formulas (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      type text NOT NULL,
      status text NOT NULL,
      name text NOT NULL,
      description text,
      icon text,
      code text NOT NULL,
      -- Random, new with every change of the code: what sandboxes know a script by.
      code_version uuid NOT NULL,
      configuration jsonb NOT NULL DEFAULT '[]',
      request_parameters jsonb NOT NULL DEFAULT '[]',
      created_by uuid,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      modified_by uuid,
      modified_at timestamptz,
      PRIMARY KEY (tenant_id, id)
    );
    CREATE INDEX reactor_formulas_newest
      ON reactor_formulas (tenant_id, created_at DESC, id DESC);

    CREATE TABLE reactors (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      name text NOT NULL,
      formula_id uuid,
      code text,
      code_version uuid,
      -- May name an application that is gone: the reactor then runs without one.
      application_id uuid,
      -- Names and values, often keys of other services; null when there are none.
      configuration_sealed bytea,
      debug_until timestamptz,
      created_by uuid,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      modified_by uuid,
      modified_at timestamptz,
      PRIMARY KEY (tenant_id, id),
      CONSTRAINT reactors_one_code CHECK ((formula_id IS NULL) <> (code IS NULL)),
      CONSTRAINT reactors_code_version CHECK ((code IS NULL) = (code_version IS NULL))
    );
    -- Ciphertext does not compress: skip the attempt.
    ALTER TABLE reactors ALTER COLUMN configuration_sealed SET STORAGE EXTERNAL;
    CREATE INDEX reactors_newest ON reactors (tenant_id, created_at DESC, id DESC);
    CREATE INDEX reactors_of_formula ON reactors (tenant_id, formula_id)
      WHERE formula_id IS NOT NULL;
  `);
}
