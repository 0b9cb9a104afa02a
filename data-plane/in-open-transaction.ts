/** Writes that name a transaction of the API: what they stage, they stage while it is open. */
import { insertAudit } from '../shared/audit/write-audit.ts';
import { ApiError, fieldError } from '../shared/errors.ts';
import type { PoolClient } from '../shared/postgres/pool.ts';
import {
  holdTransaction,
  TRANSACTION_TOKENS_MAX,
  type TransactionKey,
  type TransactionProblem,
} from '../shared/transactions/transaction-store.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { Exchange } from './exchange.ts';
import { type AccessedToken, accessEntries } from './record-access.ts';
import type { Services } from './services.ts';
import { inKeyedTransaction, type KeyedAnswer } from './write-transaction.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Throws 400 for what can be no transaction's id. */
export function readTransactionId(id: string, name: string): string {
  if (!UUID.test(id)) throw fieldError(name, 'It is not the id of a transaction: a UUID');
  return id.toLowerCase();
}

/** The transaction of the request's BT-TRANSACTION-ID; `undefined` for a write outside of any. */
export function transactionOf(
  { head }: Exchange,
  { tenant_id, application_id }: CachedApplication,
): TransactionKey | undefined {
  if (head.transactionId === undefined) return undefined;
  const id = readTransactionId(head.transactionId, 'BT-TRANSACTION-ID');
  return { tenant_id, id, application_id };
}

const PROBLEMS = {
  unknown: ['not_found', 'The transaction does not exist'],
  ended: ['conflict', 'The transaction has been committed or rolled back, or its time is over'],
  full: [
    'bad_request',
    `The transaction is full: it holds ${TRANSACTION_TOKENS_MAX} tokens or 16 MiB; commit it`,
  ],
} as const;

export function transactionError(problem: TransactionProblem): ApiError {
  const [code, detail] = PROBLEMS[problem];
  return new ApiError(code, detail);
}

/** What is staged is no effect yet, and told by the commit; a duplicate has been shown already. */
export interface StagedWrite extends KeyedAnswer {
  readonly found?: readonly AccessedToken[];
}

/** Runs `work` while the transaction cannot end; what it stages commits with its kept answer. */
export function inOpenTransaction<K extends StagedWrite>(
  exchange: Exchange,
  application: CachedApplication,
  transaction: TransactionKey,
  services: Pick<Services, 'pool'>,
  work: (client: PoolClient) => Promise<K>,
): Promise<K> {
  return inKeyedTransaction(exchange, services, async (client) => {
    const held = await holdTransaction(client, transaction);
    exchange.confirm(application, held);
    if (held.problem !== null) throw transactionError(held.problem);
    const staged = await work(client);
    const { found = [] } = staged;
    await insertAudit(client, accessEntries('read', found, exchange, application));
    return staged;
  });
}
