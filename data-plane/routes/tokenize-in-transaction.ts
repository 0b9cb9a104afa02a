/** `POST /tokenize` with BT-TRANSACTION-ID: its tokens are staged until the transaction is committed. */
import { stagedPlace } from '../../shared/transactions/staged-place.ts';
import type { TransactionKey } from '../../shared/transactions/transaction-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { inOpenTransaction, transactionError } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { type Transact, tokenizeBody } from '../tokenize-body.ts';

export async function tokenizeInTransaction(
  exchange: Exchange,
  application: CachedApplication,
  transaction: TransactionKey,
  body: unknown,
  services: Services,
): Promise<Answer> {
  const confirm = exchange.confirm.bind(exchange, application);
  const place = stagedPlace(transaction, (_reading, problem) => {
    throw transactionError(problem);
  });
  const transact: Transact = async (work) => {
    const { tokenized } = await inOpenTransaction(
      exchange,
      application,
      transaction,
      services,
      async (client) => {
        const tokenized = await work(client);
        const { text, rights, tokens } = tokenized;
        const found = tokens.filter(({ duplicate }) => duplicate === true);
        return { answer: { status: 200, body: text }, rights, found, tokenized };
      },
    );
    return tokenized;
  };
  const caller = { application, confirm, transact, place };
  return { status: 200, body: await tokenizeBody(body, caller, services) };
}
