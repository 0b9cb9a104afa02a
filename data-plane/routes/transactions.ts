/** `POST /transactions`, and the two ways to end one (spec: Transactions; facts 8). */
import type { Permission } from '../../shared/access/permissions.ts';
import { insertAudit } from '../../shared/audit/write-audit.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import {
  applyStaged,
  type CommittedToken,
  type StagedKind,
} from '../../shared/transactions/commit-transaction.ts';
import {
  OPEN_TRANSACTIONS_MAX,
  type Opening,
  openTransactions,
  type Transaction,
} from '../../shared/transactions/open-transactions.ts';
import {
  clearStaged,
  type Ending,
  endTransaction,
  type TransactionKey,
} from '../../shared/transactions/transaction-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { readTransactionId, transactionError } from '../in-open-transaction.ts';
import { accessEntries } from '../record-access.ts';
import type { Services } from '../services.ts';
import { inKeyedTransaction } from '../write-transaction.ts';
import { requireTransform } from './permit.ts';

export async function createTransaction(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  if (exchange.idempotency === undefined) {
    return openedAnswer(await services.opening.submit(application), exchange, application);
  }
  const { answer } = await inKeyedTransaction(exchange, services, async (client) => {
    const [opening] = await openTransactions(client, [application]);
    if (opening === undefined) throw new Error('an opening without its result');
    return { answer: openedAnswer(opening, exchange, application) };
  });
  return answer;
}

function openedAnswer(
  { reading, transaction }: Opening,
  exchange: Exchange,
  application: CachedApplication,
): Answer {
  exchange.confirm(application, reading);
  if (transaction === undefined) throw tooMany();
  return { status: 201, body: transactionJson(transaction) };
}

function tooMany(): ApiError {
  const detail = `The application has ${OPEN_TRANSACTIONS_MAX} open transactions; end some`;
  return new ApiError('too_many_requests', detail, { headers: { 'retry-after': '1' } });
}

function transactionJson({ id, created_by, created_at_ms, expires_at_ms }: Transaction): string {
  const created_at = new Date(created_at_ms).toISOString();
  const expires_at = new Date(expires_at_ms).toISOString();
  return JSON.stringify({ id, created_at, created_by, expires_at });
}

/** The rights are those of the moment: what was staged by a right that is gone is not committed. */
export async function commitTransaction(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  const keys = await services.dataKeys.forTenant(application.tenant_id);
  const sealing = { keys, opener: services.opener };
  const { answer, tokens } = await inKeyedTransaction(exchange, services, async (client) => {
    const transaction = await end(exchange, application, client, 'committed');
    const permit = (kind: StagedKind): void => requireRights(application, kind);
    const tokens = await applyStaged(client, transaction, permit, sealing);
    const entries = tokens.flatMap((token) =>
      accessEntries(token.operation, [token], exchange, application),
    );
    await insertAudit(client, entries);
    return { answer: { status: 200 }, tokens };
  });
  services.countTransactions('committed', 1);
  countCommitted(tokens, services);
  return answer;
}

export async function rollbackTransaction(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  const { answer } = await inKeyedTransaction(exchange, services, async (client) => {
    const transaction = await end(exchange, application, client, 'rolled_back');
    await clearStaged(client, transaction);
    return { answer: { status: 200 } };
  });
  services.countTransactions('rolled_back', 1);
  return answer;
}

/** Ends the transaction of the path; throws 404 or 409 when it is not the application's open one. */
async function end(
  exchange: Exchange,
  application: CachedApplication,
  client: Queryable,
  ending: Ending,
): Promise<TransactionKey> {
  const { tenant_id, application_id } = application;
  const id = readTransactionId(exchange.params.id ?? '', 'id');
  const transaction = { tenant_id, id, application_id };
  const ended = await endTransaction(client, transaction, ending);
  exchange.confirm(application, ended);
  if (ended.problem !== null) throw transactionError(ended.problem);
  return transaction;
}

/** What each kind of change needs of what is live, where that is now. */
const BEFORE: Record<Exclude<StagedKind['operation'], 'create'>, Permission> = {
  update: 'token:update',
  delete: 'token:delete',
  replace: 'token:delete',
};

/** The same rights as the writes needed, where each was made. */
function requireRights(application: CachedApplication, kind: StagedKind): void {
  const { operation, container, previous_container, created_container } = kind;
  const require = (permission: Permission, place: string) =>
    requireTransform(application, permission, place);
  if (operation !== 'create' && previous_container !== null) {
    require(BEFORE[operation], previous_container);
  }
  if (operation === 'update' || operation === 'delete') {
    require(BEFORE[operation], container);
    return;
  }
  const created = created_container ?? container;
  require('token:create', created);
  if (created === container) return;
  // A patch has moved it, which needs no right to create where it is now.
  require('token:update', created);
  require('token:update', container);
}

function countCommitted(tokens: readonly CommittedToken[], { countTokens }: Services): void {
  for (const operation of ['create', 'update', 'delete'] as const) {
    const count = tokens.filter((token) => token.operation === operation).length;
    if (count > 0) countTokens(operation, count);
  }
}
