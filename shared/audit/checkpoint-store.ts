/** Checkpoints of the audit trail in Postgres. Nothing there is ever changed or removed. */
import type { Queryable } from '../postgres/pool.ts';
import type { CheckpointContent, CheckpointPart } from './checkpoint.ts';
import type { Month } from './partitions.ts';

export interface StoredCheckpoint extends Omit<CheckpointContent, 'previous_digest'> {
  readonly digest: string;
  readonly signature: Buffer;
}

type Row = Omit<StoredCheckpoint, 'number' | 'to_position' | 'row_count' | 'parts'> & {
  number: string;
  to_position: string;
  row_count: string;
};

const COLUMNS = `
  number, to_position, row_count, to_char(kept_from, 'YYYY-MM-DD') AS kept_from,
  to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
  encode(digest, 'hex') AS digest, signature`;

const checkpointOf = (row: Row, parts: readonly CheckpointPart[]): StoredCheckpoint => ({
  ...row,
  number: Number(row.number),
  to_position: BigInt(row.to_position),
  row_count: Number(row.row_count),
  parts,
});

/** The newest, without its parts. */
export async function readHead(db: Queryable): Promise<StoredCheckpoint | undefined> {
  const { rows } = await db.query<Row>(
    `SELECT ${COLUMNS} FROM audit_checkpoints ORDER BY number DESC LIMIT 1`,
  );
  return rows[0] && checkpointOf(rows[0], []);
}

/** The next ones after `number`, at most `limit`. */
export async function readCheckpoints(
  db: Queryable,
  number: number,
  limit: number,
): Promise<StoredCheckpoint[]> {
  const { rows } = await db.query<Row>(
    `SELECT ${COLUMNS} FROM audit_checkpoints WHERE number > $1 ORDER BY number LIMIT $2`,
    [number, limit],
  );
  const parts = await readParts(
    db,
    rows.map((row) => row.number),
  );
  return rows.map((row) => checkpointOf(row, parts.get(row.number) ?? []));
}

async function readParts(
  db: Queryable,
  numbers: readonly string[],
): Promise<Map<string, CheckpointPart[]>> {
  const { rows } = await db.query<CheckpointPart & { number: string }>(
    `SELECT number, tenant_id, to_char(month, 'YYYY-MM-DD') AS month, row_count::int4 AS row_count,
       encode(digest, 'hex') AS digest
     FROM audit_checkpoint_parts WHERE number = ANY ($1::int8[])
     ORDER BY number, tenant_id::text COLLATE "C", month`,
    [numbers],
  );
  const parts = new Map<string, CheckpointPart[]>();
  for (const { number, ...part } of rows) {
    const ofNumber = parts.get(number) ?? [];
    ofNumber.push(part);
    parts.set(number, ofNumber);
  }
  return parts;
}

export async function insertCheckpoint(db: Queryable, checkpoint: StoredCheckpoint): Promise<void> {
  const { number, parts, digest } = checkpoint;
  await db.query(
    `INSERT INTO audit_checkpoints
       (number, to_position, row_count, kept_from, created_at, digest, signature)
     VALUES ($1, $2, $3, $4, $5, decode($6, 'hex'), $7)`,
    [
      number,
      String(checkpoint.to_position),
      checkpoint.row_count,
      checkpoint.kept_from satisfies Month,
      checkpoint.created_at,
      digest,
      checkpoint.signature,
    ],
  );
  await db.query(
    `INSERT INTO audit_checkpoint_parts (tenant_id, number, month, row_count, digest)
     SELECT tenant_id, $1, month, row_count, decode(digest, 'hex')
     FROM unnest($2::uuid[], $3::date[], $4::int8[], $5::text[])
       AS p (tenant_id, month, row_count, digest)`,
    [
      number,
      parts.map((part) => part.tenant_id),
      parts.map((part) => part.month),
      parts.map((part) => part.row_count),
      parts.map((part) => part.digest),
    ],
  );
}
