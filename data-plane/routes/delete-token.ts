/** `DELETE /tokens/{id}`: the token and everything derived from it, at once (spec: Tokens). */
import { writeDownAnswers } from '../../shared/idempotency/named-token.ts';
import type { PoolClient } from '../../shared/postgres/pool.ts';
import { tokenIdProblem } from '../../shared/tokens/token-id.ts';
import { deleteToken as deleteRow, lockToken } from '../../shared/tokens/token-store.ts';
import { tokenHeld } from '../../shared/transactions/transaction-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { transactionOf } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { inWriteTransaction, type Write } from '../write-transaction.ts';
import { deleteInTransaction } from './delete-in-transaction.ts';
import { requireHeld, requireTransform, tokenNotFound } from './permit.ts';

export async function deleteToken(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:delete');
  const transaction = transactionOf(exchange, application);
  const { id = '' } = exchange.params;
  if (tokenIdProblem(id) !== undefined) throw tokenNotFound();
  if (transaction !== undefined) {
    return deleteInTransaction(exchange, application, transaction, id, services);
  }
  const { tenant_id } = application;
  const keys = await services.dataKeys.forTenant(tenant_id);
  const remove = async (client: PoolClient): Promise<Write> => {
    const locked = await lockToken(client, tenant_id, id);
    exchange.confirm(application, locked);
    if (locked.token === undefined) throw tokenNotFound();
    const { container } = locked.token;
    const transform = requireTransform(application, 'token:delete', container);
    if (locked.held) throw tokenHeld();
    await writeDownAnswers(client, tenant_id, locked.named, { keys, opener: services.opener });
    await deleteRow(client, tenant_id, id);
    return {
      answer: { status: 204 },
      operation: 'delete',
      tokens: [{ id, container, transform }],
    };
  };
  const { answer } = await inWriteTransaction(exchange, application, services, remove);
  services.countTokens('delete', 1);
  return answer;
}
