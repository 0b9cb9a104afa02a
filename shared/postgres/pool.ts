/**
 * The connection pool of one process. Time limits and the guard against lost connections are set
 * here, once: a checked-out client without an error listener would end the process.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../observability/logger.ts';
import { isDatabaseUnavailable } from './database-error.ts';
import { endWhenSilent } from './silence.ts';

/**
 * A query may take this long before Postgres ends it. Somewhat less than the client's own limit: what
 * the server says within that shows that it is there.
 */
const STATEMENT_TIMEOUT_MS = 1_900;
/** A lock may be waited for this long (fault table: a locked table is 503, others are served). */
const LOCK_TIMEOUT_MS = 1_000;
/** Waiting for a free connection, or for a new one to be made. */
const CONNECT_TIMEOUT_MS = 2_000;
/** The client's own limit, for a server that answers nothing at all: a 503 in 2 s (docs/faults.md). */
const QUERY_TIMEOUT_MS = 2_000;
const IDLE_TIMEOUT_MS = 60_000;

export type Pool = pg.Pool;
export type PoolClient = pg.PoolClient;
/** What a pool and a client in a transaction have in common. */
export type Queryable = Pick<pg.ClientBase, 'query'>;

export interface PoolOptions {
  connectionString: string;
  /** Connections of this process at most. */
  max: number;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Seconds added to `clock_now()`; tests only. */
  clockOffsetSeconds?: number | undefined;
  log: Logger;
}

/**
 * A prepared statement is planned while its tables are small and keeps that plan until they are analysed:
 * a walk over 60 rows would become one over all that arrived since. So every statement takes an index
 * where there is one, and the one that finds single rows (test/faults/query-plans.test.ts). Compiling
 * plans pays off in reports, not here. Left to itself Postgres would plan the batched read anew each
 * time, since it knows the length of an array then: that was 40 % of a read at one connection.
 */
const PLANNING = [
  '-c plan_cache_mode=force_generic_plan',
  '-c enable_seqscan=off',
  '-c random_page_cost=1.1',
  '-c jit=off',
].join(' ');

/** Settings of every session, as the startup packet's `options`. */
function sessionOptions(clockOffsetSeconds: number | undefined): string {
  if (clockOffsetSeconds === undefined) return PLANNING;
  return `${PLANNING} -c sallyport.clock_offset_seconds=${clockOffsetSeconds}`;
}

export function createPool(options: PoolOptions): Pool {
  const { connectionString, max, applicationName, log } = options;
  const pool = new pg.Pool({
    connectionString,
    max,
    application_name: applicationName,
    options: sessionOptions(options.clockOffsetSeconds),
    statement_timeout: STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
  });
  const onLost = (error: Error): void => log.warn({ err: error }, 'database connection lost');
  pool.on('error', onLost);
  pool.on('connect', (client) => {
    client.on('error', onLost);
    endWhenSilent(client, QUERY_TIMEOUT_MS);
  });
  return pool;
}

/**
 * Ends the pool and waits until the server has closed its connections, which `pool.end()` does not: a server that is
 * stopped right after it would warn of each of them.
 */
export async function endPool(pool: Pool): Promise<void> {
  let open = pool.totalCount;
  const closed = new Promise<void>((resolve) => {
    if (open === 0) resolve();
    pool.on('remove', () => {
      open -= 1;
      if (open === 0) resolve();
    });
  });
  await pool.end();
  await Promise.race([closed, delay(CONNECT_TIMEOUT_MS, undefined, { ref: false })]);
}

/**
 * Runs `work` in one READ COMMITTED transaction; rolls back when it throws. A connection that failed
 * in between is destroyed, never returned to the pool.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('BEGIN');
    const result = await work(client);
    const { command } = await client.query('COMMIT');
    // What Postgres answers when a statement failed, even if `work` has caught its error.
    if (command !== 'COMMIT') throw new Error('a transaction whose statement failed is undone');
    return result;
  } catch (error) {
    // A database that did not answer will not answer ROLLBACK either, and the caller waits.
    if (isDatabaseUnavailable(error) && !(error instanceof pg.DatabaseError)) {
      broken = error as Error;
    } else {
      await client.query('ROLLBACK').catch((rollbackError: Error) => {
        broken = rollbackError;
      });
    }
    throw error;
  } finally {
    client.release(broken);
  }
}

/**
 * Runs `work` in a transaction whose statements are planned for the values they are bound to. For
 * queries of many shapes: a plan that fits all values took ten times as long on a search.
 */
export function withFittingPlans<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  return inTransaction(pool, async (client) => {
    await client.query('SET LOCAL plan_cache_mode = force_custom_plan');
    return work(client);
  });
}
