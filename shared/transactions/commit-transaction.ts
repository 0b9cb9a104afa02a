/**
 * Makes what a transaction has staged live: all of it in the caller's Postgres transaction, or, when
 * one token cannot be, nothing. Sealed values are moved as they are: they are bound to tenant, id,
 * type, container and expiry, not to the transaction that staged them.
 */
import { ApiError } from '../errors.ts';
import type { AnswerSealing } from '../idempotency/named-token.ts';
import type { Queryable } from '../postgres/pool.ts';
import { writeDownChanging } from './commit-answers.ts';
import { BATCH_TOKENS, DELETE_LIVE, INSERT_NEW, UPDATE_LIVE } from './commit-statements.ts';
import type { StagedOperation } from './staged-tokens.ts';
import { clearStaged, type TransactionKey } from './transaction-store.ts';

type TransactionId = Pick<TransactionKey, 'tenant_id' | 'id'>;

/** What a transaction is about to do somewhere. */
export interface StagedKind {
  operation: StagedOperation;
  container: string;
  /** Of tokens that are live: where they are now. */
  previous_container: string | null;
  /** Of new tokens: where they were created, if that is known. A patch may have moved them since. */
  created_container: string | null;
}

/** Each kind of change it has staged, once. */
async function stagedKinds(
  client: Queryable,
  { tenant_id, id }: TransactionId,
): Promise<StagedKind[]> {
  const { rows } = await client.query<StagedKind>({
    name: 'staged-kinds',
    text: `
      SELECT DISTINCT operation, container, previous_container, created_container
      FROM staged_tokens
      WHERE tenant_id = $1 AND transaction_id = $2`,
    values: [tenant_id, id],
  });
  return rows;
}

/** A token that a commit has changed. */
export interface CommittedToken {
  readonly id: string;
  readonly container: string;
  readonly operation: 'create' | 'update' | 'delete';
}

/** One row at least, for what stands beside it. */
interface BatchRow {
  id: string | null;
  container: string | null;
  /** How many the statement has tried, and the last of them. */
  tried: number;
  last: string;
}

/** The rows of all statements that it takes, in the order of the ids. */
async function inBatches<Row extends BatchRow>(
  client: Queryable,
  statement: { name: string; text: string },
  { tenant_id, id }: TransactionId,
): Promise<[Row, ...Row[]]> {
  const all: Row[] = [];
  for (let after = ''; ; ) {
    const values = [tenant_id, id, after];
    const { rows } = await client.query<Row>({ ...statement, values });
    for (const row of rows) all.push(row);
    const [first] = all;
    const end = rows[0];
    if (first === undefined || end === undefined) throw new Error('a query without FROM rows');
    if (end.tried < BATCH_TOKENS) return [first, ...all.slice(1)];
    after = end.last;
  }
}

const tokensOf = <Row extends BatchRow>(
  rows: readonly Row[],
): (Row & { id: string; container: string })[] =>
  rows.flatMap((row) => {
    const { id, container } = row;
    return id === null || container === null ? [] : [{ ...row, id, container }];
  });

interface InsertedRow extends BatchRow {
  created_container: string | null;
  /** What was staged when the statement began: everything, and new tokens. */
  changes: number;
  creates: number;
}

/** Inserts what can be inserted; `permit` throws for what may not be. */
async function insertNew(
  client: Queryable,
  transaction: TransactionId,
  permit: (kind: StagedKind) => void,
): Promise<Pick<InsertedRow, 'changes' | 'creates'> & { inserted: CommittedToken[] }> {
  const rows = await inBatches<InsertedRow>(client, INSERT_NEW, transaction);
  const [{ changes, creates }] = rows;
  const inserted = tokensOf(rows).map(({ id, container, created_container }): CommittedToken => {
    permit({ operation: 'create', container, previous_container: null, created_container });
    return { id, container, operation: 'create' };
  });
  return { inserted, changes, creates };
}

/**
 * Applies and clears what is staged; `permit` throws for what its application may not do any more, and
 * `sealing` is for what was answered when the changed tokens were created. The caller has ended the
 * transaction as committed in the same Postgres transaction, and rolls that back when this throws: 409
 * when the id of a new token has been taken, or an updated token has expired, since they were staged.
 */
export async function applyStaged(
  client: Queryable,
  transaction: TransactionId,
  permit: (kind: StagedKind) => void,
  sealing: AnswerSealing,
): Promise<CommittedToken[]> {
  const { inserted, changes } = await insertNew(client, transaction, permit);
  if (changes === inserted.length) return inserted;
  for (const kind of await stagedKinds(client, transaction)) permit(kind);
  await writeDownChanging(client, transaction, sealing);
  const values = [transaction.tenant_id, transaction.id];
  const deleted = await client.query<CommittedToken>({ ...DELETE_LIVE, values });
  const updated = await updateLive(client, transaction);
  const last = await insertNew(client, transaction, permit);
  if (last.inserted.length < last.creates) throw cannotCommit();
  await clearStaged(client, transaction);
  return [...inserted, ...deleted.rows, ...updated, ...last.inserted];
}

/**
 * A token whose time is over by its own change need not be there. Of the others, one that has expired
 * since it was changed lets nothing be committed.
 */
async function updateLive(
  client: Queryable,
  transaction: TransactionId,
): Promise<CommittedToken[]> {
  type Row = BatchRow & { failed: boolean };
  const rows = await inBatches<Row>(client, UPDATE_LIVE, transaction);
  if (rows.some(({ failed }) => failed)) throw cannotCommit();
  return tokensOf(rows).map(({ id, container }) => ({ id, container, operation: 'update' }));
}

function cannotCommit(): ApiError {
  const detail =
    'A token of the transaction has expired, or the id of a new one has been taken; ' +
    'nothing was changed, and the transaction is still open';
  return new ApiError('conflict', detail);
}
