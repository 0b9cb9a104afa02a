/** `POST /tokenize`: any JSON with its values replaced by new tokens, all or none (facts 7.2). */
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { transactionOf } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { type Transact, tokenizeBody } from '../tokenize-body.ts';
import { inWriteTransaction } from '../write-transaction.ts';
import { requireHeld } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';
import { tokenizeInTransaction } from './tokenize-in-transaction.ts';

export async function tokenize(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:create');
  const transaction = transactionOf(exchange, application);
  const body = await readTokenBody(exchange, 'json');
  if (transaction !== undefined) {
    return tokenizeInTransaction(exchange, application, transaction, body, services);
  }
  const confirm = exchange.confirm.bind(exchange, application);
  const transact: Transact = (work) =>
    inWriteTransaction(exchange, application, services, async (client) => {
      const tokenized = await work(client);
      return { ...tokenized, answer: answerOf(tokenized.text), operation: 'create' } as const;
    });
  return answerOf(await tokenizeBody(body, { application, confirm, transact }, services));
}

const answerOf = (text: string): Answer => ({ status: 200, body: text });
