/** Work that is done later: jobs, results of asynchronous reactions, what signs callbacks; sweeps. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE jobs (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      kind text COLLATE "C" NOT NULL,
      -- From when on it may be claimed: its time to run, or the end of the lease of who has it.
      claimable_at timestamptz NOT NULL DEFAULT clock_now(),
      -- How often it was claimed.
      attempt integer NOT NULL DEFAULT 0,
      -- Set when what must happen once has begun: such a job is never begun again.
      started_at timestamptz,
      -- Whose it is; who comes with another may neither begin nor finish it.
      lease_id uuid,
      finished_at timestamptz,
      -- Ids and expressions, never detokenised values; sealed with the tenant's key. Empty at its end.
      sealed bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      PRIMARY KEY (tenant_id, id)
    );
    ALTER TABLE jobs ALTER COLUMN sealed SET STORAGE EXTERNAL;
    -- Which tenants have something to do; what a tenant has, oldest first.
    CREATE INDEX jobs_of_tenant ON jobs (kind, tenant_id, claimable_at) WHERE finished_at IS NULL;
    -- Whether anything is due. Its condition is asked for there alone: no other lookup can be planned
    -- on it.
    CREATE INDEX jobs_due ON jobs (kind, claimable_at) WHERE finished_at IS NULL AND attempt >= 0;
    CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;

    CREATE TABLE reactor_results (
      tenant_id uuid NOT NULL,
      -- The id of the asynchronous request.
      id uuid NOT NULL,
      reactor_id uuid NOT NULL,
      application_id uuid NOT NULL,
      -- Status and body, exactly one per request; written in the transaction that ends its job.
      sealed bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      -- From when on it is not shown any more, since a cvc was opened for it; part of its seal. Null: as
      -- long as the row is there, or it has been erased already.
      due_at timestamptz,
      PRIMARY KEY (tenant_id, id)
    );
    ALTER TABLE reactor_results ALTER COLUMN sealed SET STORAGE EXTERNAL;
    CREATE INDEX reactor_results_by_age ON reactor_results (created_at) WHERE sealed > '';
    CREATE INDEX reactor_results_due ON reactor_results (due_at) WHERE due_at IS NOT NULL;

    CREATE TABLE webhook_secrets (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      sealed bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_now(),
      -- Signs along until then; null for the current one.
      retires_at timestamptz,
      PRIMARY KEY (tenant_id, id)
    );

    -- What is due, whosever it is: sweeps take the oldest of all tenants. Each has a condition that is
    -- always true and that sweeps alone state: no read, which asks for the same times, can be planned
    -- on it (test/faults/query-plans.test.ts).
    CREATE INDEX tokens_due ON tokens (expires_at) WHERE expires_at IS NOT NULL AND id > '';
    CREATE INDEX token_cvcs_due ON token_cvcs (due_at) WHERE token_id > '';
    CREATE INDEX webhook_secrets_retired ON webhook_secrets (retires_at)
      WHERE retires_at IS NOT NULL;
    CREATE INDEX config_changes_by_age ON config_changes (changed_at);
  `);
}
