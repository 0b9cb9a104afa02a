/**
 * The months of the audit trail: each is a partition, made ahead, and dropped as a whole when it is old.
 * Rows are written in any case: those of a month without a partition are in the default one.
 */
import type { Pool, Queryable } from '../postgres/pool.ts';

/** What waits for a lock on the trail holds up whoever writes to it meanwhile. */
const LOCK_TIMEOUT_MS = 200;
/** Rows that are moved into a new partition at once; more stay in the default one. */
const MOVED_ROWS_MAX = 10_000;
const DELETED_ROWS_MAX = 1_000;
const DEFAULT_PARTITION = 'audit_log_default';

/** The first of a month, `2026-11-01`, in UTC. */
export type Month = string;

const nameOf = (month: Month): string => `audit_log_${month.slice(0, 7).replace('-', '_')}`;
const startOf = (month: Month): string => `${month} 00:00:00+00`;

function monthAfter(month: Month): Month {
  const date = new Date(`${month}T00:00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + 1);
  return date.toISOString().slice(0, 10);
}

/** The month of the database's clock, `months` later. */
async function readMonth(db: Queryable, months: number): Promise<Month> {
  const { rows } = await db.query<{ month: Month }>(
    `SELECT to_char(clock_now() AT TIME ZONE 'UTC' + make_interval(months => $1), 'YYYY-MM-01')
       AS month`,
    [months],
  );
  return rows[0]?.month ?? '';
}

/** The months that have a partition, the oldest first. */
async function readPartitions(db: Queryable): Promise<Month[]> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'audit_log'::regclass ORDER BY 1`,
  );
  return rows
    .filter(({ name }) => name !== DEFAULT_PARTITION)
    .map(({ name }) => `${name.slice('audit_log_'.length).replace('_', '-')}-01`);
}

/** Makes the partitions of this month and the next; returns those that could not be made now. */
export async function ensurePartitions(db: Queryable): Promise<Month[]> {
  const present = await readPartitions(db);
  const wanted = [await readMonth(db, 0), await readMonth(db, 1)];
  const failed: Month[] = [];
  for (const month of wanted.filter((one) => !present.includes(one))) {
    if (!(await makePartition(db, month))) failed.push(month);
  }
  return failed;
}

/**
 * Postgres looks through the default partition for rows of the new one while nobody can write there, so
 * only a small one is looked through. Several statements without parameters are one transaction.
 */
async function makePartition(db: Queryable, month: Month): Promise<boolean> {
  const { rows } = await db.query<{ count: number }>(
    `SELECT count(*)::int4 AS count
     FROM (SELECT 1 FROM ${DEFAULT_PARTITION} LIMIT ${MOVED_ROWS_MAX + 1}) r`,
  );
  if ((rows[0]?.count ?? 0) > MOVED_ROWS_MAX) return false;
  const name = nameOf(month);
  const [from, to] = [startOf(month), startOf(monthAfter(month))];
  const isOfMonth = `created_at >= '${from}' AND created_at < '${to}'`;
  const statements = `
    SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS};
    LOCK TABLE ${DEFAULT_PARTITION} IN ACCESS EXCLUSIVE MODE;
    CREATE TABLE IF NOT EXISTS ${name} (LIKE audit_log INCLUDING DEFAULTS);
    INSERT INTO ${name} SELECT * FROM ${DEFAULT_PARTITION} WHERE ${isOfMonth};
    DELETE FROM ${DEFAULT_PARTITION} WHERE ${isOfMonth};
    ALTER TABLE audit_log ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}');
  `;
  try {
    await db.query(statements);
    return true;
  } catch {
    // Somebody wrote for too long, which the next hour will not, or another node was faster.
    return (await readPartitions(db)).includes(month);
  }
}

/** From which month on the trail is kept, when `months` are kept besides the current one. */
export function readKeptFrom(db: Queryable, months: number): Promise<Month> {
  return readMonth(db, -months);
}

/**
 * Drops the months before `keptFrom`; returns them. A checkpoint must have said so before: rows that
 * are missing without one were taken away by somebody else.
 */
export async function dropMonthsBefore(pool: Pool, keptFrom: Month): Promise<Month[]> {
  const dropped = (await readPartitions(pool)).filter((month) => month < keptFrom);
  for (const month of dropped) {
    await pool.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; DROP TABLE ${nameOf(month)};`);
  }
  for (;;) {
    const { rowCount } = await pool.query(
      `DELETE FROM ${DEFAULT_PARTITION} WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM ${DEFAULT_PARTITION} WHERE created_at < $1::timestamptz
         LIMIT ${DELETED_ROWS_MAX}))`,
      [startOf(keptFrom)],
    );
    if ((rowCount ?? 0) < DELETED_ROWS_MAX) return dropped;
  }
}
