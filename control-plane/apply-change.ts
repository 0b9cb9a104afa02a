/**
 * How configuration is changed: what is written and the record of it commit together, and data
 * planes are told afterwards. A change that was answered is never lost for want of a notice.
 */
import type { ChangedEntity } from '../shared/config-entries/config-change.ts';
import { holdKey } from '../shared/idempotency/record-store.ts';
import { inTransaction, type Pool, type PoolClient } from '../shared/postgres/pool.ts';
import { auditChange } from './audit-change.ts';
import type { Caller } from './authenticate.ts';
import type { ChangePublisher } from './config-changes/publish-change.ts';
import { recordChange } from './config-changes/record-change.ts';
import { keepResult } from './keep-answer.ts';

export interface ChangeDestinations {
  pool: Pool;
  publisher: ChangePublisher;
}

/**
 * Runs `write` in one transaction with the record that `entity` of the caller's tenant changed, then
 * publishes the change. The record comes first: it locks the tenant's row, so changes and the deletion
 * of a tenant take their locks in one order and follow one another. Behind that lock the caller is
 * judged again. What `write` returns is what is answered, and kept if the request has an idempotency
 * key. Throws 401 when the tenant is gone, 401 or 403 when the caller's right is, 409 while a request
 * with the same key is under way.
 */
export async function applyChange<T>(
  { pool, publisher }: ChangeDestinations,
  caller: Pick<Caller, 'tenant_id' | 'application_id' | 'origin' | 'confirm' | 'claim'>,
  entity: ChangedEntity,
  write: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const { change, result } = await inTransaction(pool, async (client) => {
    const { claim } = caller;
    // Before the tenant's lock: a twin that waits behind it is told so at once.
    if (claim !== undefined) await holdKey(client, claim);
    const recorded = await recordChange(client, caller.tenant_id, [entity]);
    await caller.confirm(client);
    const written = await write(client);
    await auditChange(client, caller, entity);
    if (claim !== undefined) await keepResult(client, claim, written);
    return { change: recorded, result: written };
  });
  await publisher.publish(change);
  return result;
}
