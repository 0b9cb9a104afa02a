/**
 * Writes the next checkpoint of the audit trail: over the rows of transactions that have all ended, so
 * that none can turn up below it later. One node at a time does.
 */
import type { KeyObject } from 'node:crypto';
import { ADVISORY_LOCKS } from '../postgres/advisory-locks.ts';
import { inTransaction, type Pool, type PoolClient, type Queryable } from '../postgres/pool.ts';
import {
  type CheckpointContent,
  checkpointDigest,
  digestRows,
  endOfCheckpoint,
  FIRST_POSITION,
  signDigest,
} from './checkpoint.ts';
import { insertCheckpoint, readHead, type StoredCheckpoint } from './checkpoint-store.ts';
import { type Month, readKeptFrom } from './partitions.ts';
import { restoreOrder } from './restore-order.ts';

/** So that one is written well within the limit of a transaction's statements. */
const ROWS_MAX = 20_000;

export interface CheckpointOptions {
  readonly pool: Pool;
  readonly installation: { readonly auditKey: KeyObject };
  /** How many months of the trail are kept besides the current one. */
  readonly months: number;
}

/** The checkpoint; `undefined` when there is nothing new, or another node is at it. */
export function writeCheckpoint(options: CheckpointOptions): Promise<StoredCheckpoint | undefined> {
  return inTransaction(options.pool, async (client) => {
    const { rows } = await client.query<{ locked: boolean }>(
      'SELECT pg_try_advisory_xact_lock($1) AS locked',
      [ADVISORY_LOCKS.audit_checkpoint],
    );
    return rows[0]?.locked === true ? writeNext(client, options) : undefined;
  });
}

async function writeNext(
  client: PoolClient,
  { installation, months }: CheckpointOptions,
): Promise<StoredCheckpoint | undefined> {
  const head = await readHead(client);
  if (head !== undefined) await restoreOrder(client, head);
  const from = head?.to_position ?? FIRST_POSITION;
  const below = await readSettled(client);
  if (below <= from) return undefined;
  const to = await endOfCheckpoint(client, { from, to: below }, ROWS_MAX);
  const parts = await digestRows(client, { from, to });
  const kept_from = laterOf(await readKeptFrom(client, months), head?.kept_from);
  const gaveUpMonths = head !== undefined && kept_from !== head.kept_from;
  if (parts.length === 0 && !gaveUpMonths) return undefined;
  const content: CheckpointContent = {
    number: (head?.number ?? 0) + 1,
    to_position: to,
    row_count: parts.reduce((sum, { row_count }) => sum + row_count, 0),
    kept_from,
    created_at: await readNow(client),
    previous_digest: head?.digest ?? '',
    parts,
  };
  const digest = checkpointDigest(content);
  const signature = signDigest(installation.auditKey, digest);
  const checkpoint = { ...content, digest, signature };
  await insertCheckpoint(client, checkpoint);
  return checkpoint;
}

/** What was given up once stays so, should more months be kept from now on. */
function laterOf(month: Month, other: Month | undefined): Month {
  return other !== undefined && other > month ? other : month;
}

/** All rows below this position are there: it is read before they are. */
async function readSettled(db: Queryable): Promise<bigint> {
  const { rows } = await db.query<{ below: string }>(
    `SELECT base + pg_snapshot_xmin(pg_current_snapshot())::text::int8 AS below
     FROM audit_positions WHERE id = 1`,
  );
  return BigInt(rows[0]?.below ?? 0);
}

/** The next whole millisecond: not before the time of any row that is covered. */
async function readNow(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ now: Date }>(
    `SELECT date_trunc('milliseconds', clock_now()) + interval '1 ms' AS now`,
  );
  return (rows[0]?.now ?? new Date(0)).toISOString();
}
