/**
 * Who gets the next jobs. Tenants are walked in a circle by an index, one step each however much they
 * have waiting, so that 100,000 jobs of one do not stand before the first of another.
 */
import type { Queryable } from '../postgres/pool.ts';
import { type ClaimedJob, type JobKind, LEASE_MS } from './job-store.ts';

/** Tenants looked at by one statement: about a millisecond. */
export const TENANTS_MAX = 100;
/** Below every tenant's id: where the circle begins. */
export const FIRST_TENANT = '00000000-0000-0000-0000-000000000000';

/** Whether any job of the kind is due: what an idle process asks, one step in an index. */
export async function isAnyDue(db: Queryable, kind: JobKind): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'any-job-due',
    text: `
      SELECT 1 FROM jobs
      WHERE kind = $1 AND finished_at IS NULL AND attempt >= 0 AND claimable_at <= clock_now()
      LIMIT 1`,
    values: [kind],
  });
  return rowCount === 1;
}

export interface TenantTurn {
  readonly tenant_id: string;
  /** Whether it has something that is due. */
  readonly due: boolean;
}

/** The next tenants after `after` that have jobs of the kind; fewer than the most: the last ones. */
export async function nextTenants(
  db: Queryable,
  kind: JobKind,
  after: string,
): Promise<TenantTurn[]> {
  const { rows } = await db.query<TenantTurn>({
    name: 'next-job-tenants',
    text: `
      WITH RECURSIVE walk AS (
        (SELECT tenant_id, 1 AS step FROM jobs
         WHERE kind = $1 AND finished_at IS NULL AND tenant_id > $2
         ORDER BY tenant_id LIMIT 1)
        UNION ALL
        SELECT n.tenant_id, w.step + 1 FROM walk w CROSS JOIN LATERAL (
          SELECT tenant_id FROM jobs
          WHERE kind = $1 AND finished_at IS NULL AND tenant_id > w.tenant_id
          ORDER BY tenant_id LIMIT 1
        ) n WHERE w.step < ${TENANTS_MAX}
      )
      SELECT w.tenant_id, j.id IS NOT NULL AS due FROM walk w LEFT JOIN LATERAL (
        SELECT id FROM jobs WHERE kind = $1 AND finished_at IS NULL
          AND tenant_id = w.tenant_id AND claimable_at <= clock_now()
        ORDER BY claimable_at LIMIT 1
      ) j ON true
      ORDER BY w.step`,
    values: [kind, after],
  });
  return rows;
}

/** How many jobs of a tenant are wanted at most. */
export interface TenantShare {
  readonly tenant_id: string;
  readonly count: number;
}

export interface JobClaim extends ClaimedJob {
  /** For how long it could have been claimed. */
  readonly delay_ms: number;
}

/**
 * Leases up to `total` due jobs, of each tenant at most its share and the oldest first. What others are
 * claiming at the same time is passed over, not waited for.
 */
export async function claimJobs(
  db: Queryable,
  kind: JobKind,
  shares: readonly TenantShare[],
  total: number,
): Promise<JobClaim[]> {
  const { rows } = await db.query<JobClaim>({
    name: 'claim-jobs',
    text: `
      WITH picked AS MATERIALIZED (
        SELECT j.* FROM unnest($2::uuid[], $3::int4[]) WITH ORDINALITY AS s (tenant_id, count, n)
        CROSS JOIN LATERAL (
          SELECT ctid, id, claimable_at FROM jobs
          WHERE kind = $1 AND tenant_id = s.tenant_id AND finished_at IS NULL
            AND claimable_at <= clock_now()
          ORDER BY claimable_at LIMIT s.count FOR UPDATE SKIP LOCKED
        ) j
        LIMIT $4
      ),
      -- By place, not by a join: what a limit lets through is unknown to a plan.
      claimed AS (
        UPDATE jobs SET lease_id = gen_random_uuid(), attempt = attempt + 1,
          claimable_at = clock_now() + make_interval(secs => ${LEASE_MS / 1000})
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM picked))
        RETURNING tenant_id, id, kind, attempt, started_at, lease_id, sealed
      )
      SELECT c.tenant_id, c.id, c.kind, c.attempt, c.started_at IS NOT NULL AS started, c.lease_id,
        c.sealed, date_part('epoch', clock_now() - p.claimable_at) * 1000 AS delay_ms
      FROM claimed c JOIN picked p ON p.id = c.id`,
    values: [
      kind,
      shares.map(({ tenant_id }) => tenant_id),
      shares.map(({ count }) => count),
      total,
    ],
  });
  return rows;
}
