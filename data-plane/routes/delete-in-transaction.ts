/** `DELETE /tokens/{id}` with BT-TRANSACTION-ID: gone for the transaction, live until it is committed. */
import {
  holdToken,
  lockVisible,
  stageDeletion,
  unstageCreate,
} from '../../shared/transactions/staged-tokens.ts';
import type { TransactionKey } from '../../shared/transactions/transaction-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { inOpenTransaction } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { requireTransform, tokenNotFound } from './permit.ts';

export async function deleteInTransaction(
  exchange: Exchange,
  application: CachedApplication,
  transaction: TransactionKey,
  id: string,
  services: Services,
): Promise<Answer> {
  const { answer } = await inOpenTransaction(
    exchange,
    application,
    transaction,
    services,
    async (client) => {
      const { token, operation, live_container, held_by } = await lockVisible(
        client,
        transaction,
        id,
      );
      if (token === undefined) throw tokenNotFound();
      requireTransform(application, 'token:delete', token.container);
      // Nothing of it is live, or what is has come without this transaction: it only forgets its own.
      if (operation === 'create' || live_container === null) {
        await unstageCreate(client, transaction, id);
      } else {
        if (operation === null) await holdToken(client, transaction, id, held_by);
        await stageDeletion(client, transaction, id);
      }
      return { answer: { status: 204 } };
    },
  );
  return answer;
}
