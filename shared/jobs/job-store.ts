/**
 * Jobs in Postgres: enqueued in the transaction that causes them, and changed only by who holds their
 * lease. A lease is a random id in the row: whoever was stopped for longer than it lasted finds another
 * there, and what it does then changes nothing. How they are claimed is in claim-jobs.ts.
 */
import type { Queryable } from '../postgres/pool.ts';

export type JobKind = 'react' | 'callback';

export interface NewJob {
  readonly tenant_id: string;
  readonly id: string;
  readonly kind: JobKind;
  /** By the database's clock; absent: at once. */
  readonly run_at_ms?: number;
  /** Its content, sealed with `sealLabel('job', tenant_id, id, kind)`. */
  readonly sealed: Buffer;
}

export interface ClaimedJob {
  readonly tenant_id: string;
  readonly id: string;
  readonly kind: JobKind;
  /** 1 for the first time it is claimed. */
  readonly attempt: number;
  /** It was begun before and not finished: it must not be begun again, only ended. */
  readonly started: boolean;
  readonly lease_id: string;
  readonly sealed: Buffer;
}

/** What names a job and the lease on it. */
export type HeldJob = Pick<ClaimedJob, 'tenant_id' | 'id' | 'lease_id'>;

/** A process that is gone is noticed by the end of its leases. */
export const LEASE_MS = 15_000;

/** Listeners are told that there may be something to claim. */
export const JOBS_CHANNEL = 'sallyport_jobs';
/**
 * Commits that notify wait for each other, so a process notifies at most this often; who is woken looks
 * again for at least as long (run-jobs.ts).
 */
export const NOTICE_EVERY_MS = 100;

let lastNoticeAt = Number.NEGATIVE_INFINITY;

/** Writes the job in the caller's transaction; it is claimed once that has committed. */
export async function enqueueJob(client: Queryable, job: NewJob): Promise<void> {
  await client.query({
    name: 'enqueue-job',
    text: `
      INSERT INTO jobs (tenant_id, id, kind, claimable_at, sealed)
      VALUES ($1, $2, $3, coalesce(to_timestamp($4::float8 / 1000), clock_now()), $5)`,
    values: [job.tenant_id, job.id, job.kind, job.run_at_ms ?? null, job.sealed],
  });
  if (job.run_at_ms === undefined) await announceJobs(client);
}

/** Wakes whoever runs jobs, now or with the caller's transaction; it is a hint and may be left out. */
export async function announceJobs(client: Queryable): Promise<void> {
  const now = performance.now();
  if (now - lastNoticeAt < NOTICE_EVERY_MS) return;
  lastNoticeAt = now;
  await client.query(`SELECT pg_notify('${JOBS_CHANNEL}', '')`);
}

/** A job that is finished or given back has no lease. */
const HELD = 'tenant_id = $1 AND id = $2 AND lease_id = $3';
const heldValues = ({ tenant_id, id, lease_id }: HeldJob): unknown[] => [tenant_id, id, lease_id];

/** Marks what must happen only once as begun. False: the lease is lost, or it was begun before. */
export async function beginJob(client: Queryable, job: HeldJob): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'begin-job',
    text: `UPDATE jobs SET started_at = clock_now() WHERE ${HELD} AND started_at IS NULL`,
    values: heldValues(job),
  });
  return rowCount === 1;
}

/** Ends the job and empties it. False: the lease is lost, and nothing of its work may be kept. */
export async function finishJob(client: Queryable, job: HeldJob): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'finish-job',
    text: `UPDATE jobs SET finished_at = clock_now(), lease_id = NULL, sealed = '' WHERE ${HELD}`,
    values: heldValues(job),
  });
  return rowCount === 1;
}

/** Gives it back, to be run again as if it had not begun. False: the lease is lost. */
export async function retryJob(
  client: Queryable,
  job: HeldJob,
  run_at_ms: number,
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'retry-job',
    text: `
      UPDATE jobs SET claimable_at = to_timestamp($4::float8 / 1000), lease_id = NULL,
        started_at = NULL
      WHERE ${HELD}`,
    values: [...heldValues(job), run_at_ms],
  });
  return rowCount === 1;
}

/**
 * Gives it back as it is after `delay_ms`: who claims it next is told whether it was begun. A claim that
 * came to nothing does not count as one.
 */
export async function releaseJob(
  client: Queryable,
  job: HeldJob,
  delay_ms: number,
  counts: boolean,
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'release-job',
    text: `
      UPDATE jobs SET claimable_at = clock_now() + make_interval(secs => $4::float8 / 1000),
        lease_id = NULL, attempt = attempt - $5::int4
      WHERE ${HELD}`,
    values: [...heldValues(job), delay_ms, counts ? 0 : 1],
  });
  return rowCount === 1;
}

/** Extends the leases of all these jobs; answers the lease ids of those that are still held. */
export async function extendLeases(
  client: Queryable,
  jobs: readonly HeldJob[],
): Promise<Set<string>> {
  const extended = await extendUnchanged(client, jobs);
  // A job that begins meanwhile has moved to another place: the statement passes it over.
  const missing = jobs.filter(({ lease_id }) => !extended.has(lease_id));
  if (missing.length === 0) return extended;
  return extended.union(await extendUnchanged(client, missing));
}

async function extendUnchanged(client: Queryable, jobs: readonly HeldJob[]): Promise<Set<string>> {
  const { rows } = await client.query<{ lease_id: string }>({
    name: 'extend-leases',
    text: `
      UPDATE jobs SET claimable_at = clock_now() + make_interval(secs => ${LEASE_MS / 1000})
      WHERE ctid = ANY (ARRAY(
        SELECT j.ctid FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS h (tenant_id, id, lease_id)
        CROSS JOIN LATERAL (
          SELECT ctid FROM jobs
          WHERE tenant_id = h.tenant_id AND id = h.id AND lease_id = h.lease_id
          LIMIT 1 FOR UPDATE
        ) j))
      RETURNING lease_id`,
    values: [
      jobs.map((job) => job.tenant_id),
      jobs.map((job) => job.id),
      jobs.map((job) => job.lease_id),
    ],
  });
  return new Set(rows.map(({ lease_id }) => lease_id));
}
