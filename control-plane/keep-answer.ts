/**
 * Answers of management operations that are kept under an idempotency key. Those that issue a key keep
 * it with them, sealed, for a day: the only place where one is kept (design section 12).
 */
import { type Operation, successStatus } from '../shared/api/operation.ts';
import type { DataKeys } from '../shared/crypto/data-keys.ts';
import { SealBrokenError } from '../shared/crypto/envelope.ts';
import {
  type IdempotencyClaim,
  idempotencyScope,
  inProgress,
  readIdempotencyKey,
} from '../shared/idempotency/claim.ts';
import { type KeptAnswer, openAnswer } from '../shared/idempotency/kept-answer.ts';
import { deleteDeadRecord, insertRecord, readRecords } from '../shared/idempotency/record-store.ts';
import type { Queryable } from '../shared/postgres/pool.ts';
import type { AuthenticatedKey } from './authenticate.ts';

export interface OperationClaim extends IdempotencyClaim {
  readonly operation: Operation;
}

/** The success of an operation as it goes over the wire. `result` is JSON, or nothing. */
export function answerOf(operation: Operation, result: unknown): KeptAnswer {
  const status = successStatus(operation);
  if (result === undefined) return { status };
  const id = status === 201 ? createdId(result) : undefined;
  const headers = id === undefined ? undefined : ['location', `${operation.path}/${id}`];
  return { status, headers, body: JSON.stringify(result) };
}

/** Ids that we or an administrator gave: uuids all of them. */
function createdId(result: unknown): string | undefined {
  const id: unknown = typeof result === 'object' && result !== null && Reflect.get(result, 'id');
  return typeof id === 'string' ? id : undefined;
}

/** The claim of a request, if its header makes one. Throws 400 for what is no key. */
export async function claimOf(
  operation: Operation,
  header: string | undefined,
  id: string,
  { tenant_id, application_id }: AuthenticatedKey,
  dataKeys: Pick<DataKeys, 'forTenant'>,
): Promise<OperationClaim | undefined> {
  const key = readIdempotencyKey(operation, header);
  if (key === undefined) return undefined;
  try {
    const keys = await dataKeys.forTenant(tenant_id);
    const scope = idempotencyScope(keys.search, { application_id, operation, params: [id], key });
    return { tenant_id, scope, keys, operation };
  } catch (error) {
    // A tenant without keys is being deleted, which whatever it asks for finds out.
    if (error instanceof SealBrokenError) return undefined;
    throw error;
  }
}

/** What was answered under the key. Throws 409 while somebody is at work on it. */
export async function findKeptAnswer(
  claim: OperationClaim,
  { pool, dataKeys }: { pool: Queryable; dataKeys: DataKeys },
): Promise<KeptAnswer | undefined> {
  const [found] = await readRecords(pool, [claim]);
  const record = found?.record;
  if (record === undefined) return undefined;
  if (record.dead) {
    await deleteDeadRecord(pool, claim);
    return undefined;
  }
  if (record.sealed === null) throw inProgress();
  return openAnswer(dataKeys, claim, record.sealed, record.effect_at_ms);
}

/** Keeps the result of the claim's operation, in the transaction of its effect. */
export async function keepResult(
  client: Queryable,
  claim: OperationClaim,
  result: unknown,
): Promise<void> {
  await insertRecord(client, claim, answerOf(claim.operation, result));
}
