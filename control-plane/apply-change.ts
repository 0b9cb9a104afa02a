/**
 * How configuration is changed: what is written and the record of it commit together, and data
 * planes are told afterwards. A change that was answered is never lost for want of a notice.
 */
import type { ChangedEntity } from '../shared/config-entries/config-change.ts';
import { inTransaction, type Pool, type PoolClient } from '../shared/postgres/pool.ts';
import type { Caller } from './authenticate.ts';
import type { ChangePublisher } from './config-changes/publish-change.ts';
import { recordChange } from './config-changes/record-change.ts';

export interface ChangeDestinations {
  pool: Pool;
  publisher: ChangePublisher;
}

/**
 * Runs `write` in one transaction with the record that `entity` of the caller's tenant changed, then
 * publishes the change. The record comes first: it locks the tenant's row, so changes and the deletion
 * of a tenant take their locks in one order and follow one another. Behind that lock the caller is
 * judged again. Throws 401 when the tenant is gone, 401 or 403 when the caller's right is.
 */
export async function applyChange<T>(
  { pool, publisher }: ChangeDestinations,
  caller: Pick<Caller, 'tenant_id' | 'confirm'>,
  entity: ChangedEntity,
  write: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const { change, result } = await inTransaction(pool, async (client) => {
    const recorded = await recordChange(client, caller.tenant_id, [entity]);
    await caller.confirm(client);
    return { change: recorded, result: await write(client) };
  });
  await publisher.publish(change);
  return result;
}
