/** `DELETE /tokens/{id}`: the token and everything derived from it, at once (spec: Tokens). */
import { inTransaction } from '../../shared/postgres/pool.ts';
import { tokenIdProblem } from '../../shared/tokens/token-id.ts';
import { deleteToken as deleteRow, lockToken } from '../../shared/tokens/token-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import { refuseTransaction, requireHeld, requireTransform, tokenNotFound } from './permit.ts';

export async function deleteToken(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:delete');
  refuseTransaction(exchange.head.transactionId);
  const { id = '' } = exchange.params;
  if (tokenIdProblem(id) !== undefined) throw tokenNotFound();
  const { tenant_id } = application;
  await inTransaction(services.pool, async (client) => {
    const locked = await lockToken(client, tenant_id, id);
    exchange.confirm(application, locked);
    if (locked.token === undefined) throw tokenNotFound();
    requireTransform(application, 'token:delete', locked.token.container);
    await deleteRow(client, tenant_id, id);
  });
  services.countTokens('delete', 1);
  return { status: 204 };
}
