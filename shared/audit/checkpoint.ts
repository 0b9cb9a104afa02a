/**
 * What a checkpoint of the audit trail says, and how it is digested and signed. It covers the rows of
 * one range of positions by the digests of their parts, each the rows of one tenant in one month, and
 * the digest of the checkpoint before it: whatever is changed, taken out, put in or moved later shows.
 */
import { createHash, createHmac, type Hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Queryable } from '../postgres/pool.ts';
import type { Month } from './partitions.ts';

/** The rows of one tenant in one month, as far as one checkpoint covers them. */
export interface CheckpointPart {
  readonly tenant_id: string;
  readonly month: Month;
  readonly row_count: number;
  /** Hexadecimal, like all digests here. */
  readonly digest: string;
}

export interface CheckpointContent {
  readonly number: number;
  /** It covers the rows from the checkpoint before it up to here, this one excluded. */
  readonly to_position: bigint;
  readonly row_count: number;
  /** Rows of earlier months may be gone, by their age. */
  readonly kept_from: Month;
  /** ISO 8601. */
  readonly created_at: string;
  /** Of the checkpoint before; the empty text for the first. */
  readonly previous_digest: string;
  /** Ordered by tenant and month. */
  readonly parts: readonly CheckpointPart[];
}

/** Names what is hashed, so that a hash of something else can never be taken for it. */
const FORM = 'sallyport-audit-checkpoint-1';

export function checkpointDigest(content: CheckpointContent): string {
  const { number, to_position, row_count, kept_from, created_at, previous_digest } = content;
  const parts = content.parts.map((p) => [p.tenant_id, p.month, p.row_count, p.digest]);
  const head = [FORM, number, String(to_position), row_count, kept_from, created_at];
  const text = JSON.stringify([...head, previous_digest, parts]);
  return createHash('sha256').update(text).digest('hex');
}

export function signDigest(key: KeyObject, digest: string): Buffer {
  return createHmac('sha256', key).update(digest).digest();
}

/** Whether who signed the digest had the installation's key. */
export function isSignedBy(key: KeyObject, digest: string, signature: Buffer): boolean {
  const signed = signDigest(key, digest);
  return signature.length === signed.length && timingSafeEqual(signature, signed);
}

/** From `from` on, before `to`. */
export interface PositionRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** Rows of one statement, some 100 ms; those of one transaction are never parted. */
const ROWS_MAX = 5_000;
/** The lowest that there can be: a row put in below the first real one is no less an addition. */
export const FIRST_POSITION = -(2n ** 63n);

/**
 * A row as text: every column that was written, unambiguously. Order is by position, then by time and
 * id, so that it is the same whenever and from wherever the rows are read.
 */
const READ_LINES = {
  name: 'read-audit-lines',
  text: `
    SELECT tenant_id, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-01') AS month,
      json_build_array(tenant_id, id, (extract(epoch FROM created_at) * 1000000)::int8, actor_type,
        actor_id, entity_type, entity_id, operation, via_type, via_id, container, denied, trace_id,
        position)::text AS line
    FROM audit_log WHERE position >= $1 AND position < $2
    ORDER BY position, created_at, id`,
};

/** Where a range is cut so that about `rows` are before it; `undefined` when it has no more. */
async function readCut(
  db: Queryable,
  { from, to }: PositionRange,
  rows: number,
): Promise<bigint | undefined> {
  const found = await db.query<{ position: string }>({
    name: 'read-audit-cut',
    text: `
      SELECT position FROM audit_log WHERE position >= $1 AND position < $2
      ORDER BY position OFFSET $3 LIMIT 1`,
    values: [String(from), String(to), rows],
  });
  const position = found.rows[0]?.position;
  if (position === undefined) return undefined;
  // A transaction with more rows than that is taken whole.
  return BigInt(position) > from ? BigInt(position) : from + 1n;
}

/** Where a checkpoint of at most about `rowsMax` rows ends. */
export async function endOfCheckpoint(
  db: Queryable,
  range: PositionRange,
  rowsMax: number,
): Promise<bigint> {
  return (await readCut(db, range, rowsMax)) ?? range.to;
}

/** Digests the rows that are in the range now, by part. */
export async function digestRows(db: Queryable, range: PositionRange): Promise<CheckpointPart[]> {
  const parts = new Map<string, { tenant_id: string; month: Month; count: number; hash: Hash }>();
  let { from } = range;
  while (from < range.to) {
    const to = (await readCut(db, { from, to: range.to }, ROWS_MAX)) ?? range.to;
    const { rows } = await db.query<{ tenant_id: string; month: Month; line: string }>({
      ...READ_LINES,
      values: [String(from), String(to)],
    });
    for (const { tenant_id, month, line } of rows) {
      const name = `${tenant_id} ${month}`;
      const part = parts.get(name) ?? { tenant_id, month, count: 0, hash: createHash('sha256') };
      part.count += 1;
      part.hash.update(line).update('\n');
      parts.set(name, part);
    }
    from = to;
  }
  const ordered = [...parts].sort(([a], [b]) => (a < b ? -1 : 1));
  return ordered.map(([, { tenant_id, month, count, hash }]) => ({
    ...{ tenant_id, month, row_count: count, digest: hash.digest('hex') },
  }));
}
