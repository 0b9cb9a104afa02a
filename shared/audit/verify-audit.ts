/**
 * Walks all checkpoints of the audit trail and holds them against each other and against the rows that
 * are there. What it finds names places, never contents.
 */
import type { KeyObject } from 'node:crypto';
import type { Pool } from '../postgres/pool.ts';
import {
  type CheckpointPart,
  checkpointDigest,
  digestRows,
  FIRST_POSITION,
  isSignedBy,
} from './checkpoint.ts';
import { readCheckpoints, readHead, type StoredCheckpoint } from './checkpoint-store.ts';
import type { Month } from './partitions.ts';

/** A checkpoint that was written down, in a log or by hand, where no change of the database reaches. */
export interface LoggedHead {
  readonly number: number;
  readonly digest: string;
}

export type AuditProblemKind =
  | 'checkpoint_missing'
  | 'checkpoint_changed'
  | 'checkpoint_forged'
  | 'rows_missing'
  | 'rows_added'
  | 'rows_changed'
  | 'head_missing'
  | 'head_changed';

export interface AuditProblem {
  readonly kind: AuditProblemKind;
  /** Of the checkpoint. */
  readonly number: number;
  readonly month?: Month;
  readonly tenant_id?: string;
}

export interface AuditVerdict {
  readonly problems: readonly AuditProblem[];
  readonly checkpoints: number;
  /** Rows that checkpoints cover. */
  readonly rows: number;
  /** Rows that no checkpoint covers yet. */
  readonly uncovered: number;
  readonly head: LoggedHead | null;
}

const CHECKPOINTS_AT_ONCE = 100;
/** Of one gap: a forged number must not make the list endless. */
const MISSING_NAMED_MAX = 1_000;

export async function verifyAudit(
  pool: Pool,
  { auditKey }: { readonly auditKey: KeyObject },
  logged: LoggedHead | undefined,
): Promise<AuditVerdict> {
  const problems: AuditProblem[] = [];
  const keptFrom = (await readHead(pool))?.kept_from ?? '';
  let head: StoredCheckpoint | undefined;
  let rows = 0;
  let sawLogged = false;
  for (;;) {
    const checkpoints = await readCheckpoints(pool, head?.number ?? 0, CHECKPOINTS_AT_ONCE);
    for (const checkpoint of checkpoints) {
      problems.push(...checkChain(checkpoint, head, auditKey));
      problems.push(...(await checkRows(pool, checkpoint, head, keptFrom)));
      if (checkpoint.number === logged?.number) {
        sawLogged = true;
        if (checkpoint.digest !== logged.digest) problems.push(about('head_changed', logged));
      }
      rows += checkpoint.row_count;
      head = checkpoint;
    }
    if (checkpoints.length < CHECKPOINTS_AT_ONCE) break;
  }
  if (logged !== undefined && !sawLogged) problems.push(about('head_missing', logged));
  return {
    problems,
    checkpoints: head?.number ?? 0,
    rows,
    uncovered: await countFrom(pool, head?.to_position ?? FIRST_POSITION),
    head: head === undefined ? null : { number: head.number, digest: head.digest },
  };
}

const about = (kind: AuditProblemKind, { number }: LoggedHead): AuditProblem => ({ kind, number });

/** The checkpoint by itself, and as the one after `previous`. */
function checkChain(
  checkpoint: StoredCheckpoint,
  previous: StoredCheckpoint | undefined,
  auditKey: KeyObject,
): AuditProblem[] {
  const problems: AuditProblem[] = [];
  const expected = (previous?.number ?? 0) + 1;
  const isNext = checkpoint.number === expected;
  const named = Math.min(checkpoint.number, expected + MISSING_NAMED_MAX);
  for (let number = expected; number < named; number += 1) {
    problems.push({ kind: 'checkpoint_missing', number });
  }
  const { number, digest, signature } = checkpoint;
  if (!isSignedBy(auditKey, digest, signature)) {
    problems.push({ kind: 'checkpoint_forged', number });
  }
  // Without the one before it, what it was chained to is not known.
  const content = { ...checkpoint, previous_digest: previous?.digest ?? '' };
  if (isNext && checkpointDigest(content) !== digest) {
    problems.push({ kind: 'checkpoint_changed', number });
  }
  return problems;
}

/** The rows of its range, part by part, but for months that are gone by their age. */
async function checkRows(
  pool: Pool,
  { number, to_position, parts }: StoredCheckpoint,
  previous: StoredCheckpoint | undefined,
  keptFrom: Month,
): Promise<AuditProblem[]> {
  // Rows of checkpoints that are missing would be taken for additions.
  if (number !== (previous?.number ?? 0) + 1) return [];
  const from = previous?.to_position ?? FIRST_POSITION;
  const found = await digestRows(pool, { from, to: to_position });
  const byName = new Map(found.map((part) => [nameOf(part), part]));
  const problems: AuditProblem[] = [];
  for (const part of parts) {
    const there = byName.get(nameOf(part));
    byName.delete(nameOf(part));
    const kind = part.month < keptFrom ? undefined : difference(part, there);
    if (kind !== undefined) problems.push(placed(kind, number, part));
  }
  for (const part of byName.values()) problems.push(placed('rows_added', number, part));
  return problems;
}

const nameOf = ({ tenant_id, month }: CheckpointPart): string => `${tenant_id} ${month}`;

const placed = (
  kind: AuditProblemKind,
  number: number,
  { month, tenant_id }: CheckpointPart,
): AuditProblem => ({ kind, number, month, tenant_id });

function difference(
  part: CheckpointPart,
  there: CheckpointPart | undefined,
): AuditProblemKind | undefined {
  const count = there?.row_count ?? 0;
  if (count < part.row_count) return 'rows_missing';
  if (count > part.row_count) return 'rows_added';
  return there?.digest === part.digest ? undefined : 'rows_changed';
}

async function countFrom(pool: Pool, position: bigint): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(
    'SELECT count(*) AS count FROM audit_log WHERE position >= $1',
    [String(position)],
  );
  return Number(rows[0]?.count ?? 0);
}
