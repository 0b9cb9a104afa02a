/**
 * `POST /tokens` with BT-TRANSACTION-ID: the token is staged until the transaction is committed. Its
 * `cvc` hour and its `expires_at` count from now. Concurrent creates share a statement, whatever
 * transactions they are of.
 */
import type { Transform } from '../../shared/access/access-rules.ts';
import type { TokenCreation } from '../../shared/tokens/create-token.ts';
import { createdAnswer, storedJson } from '../../shared/tokens/created-token.ts';
import {
  type CreationContext,
  type StoredToken,
  storeToken,
} from '../../shared/tokens/store-token.ts';
import { storeTokens } from '../../shared/tokens/store-tokens.ts';
import { fingerprintOfDraft } from '../../shared/tokens/token-draft.ts';
import { withMember } from '../../shared/tokens/token-json.ts';
import type { TokenRow } from '../../shared/tokens/token-row.ts';
import {
  asInsertResult,
  type Refuse,
  stagedPlace,
} from '../../shared/transactions/staged-place.ts';
import { type TransactionKey, takeFromEnded } from '../../shared/transactions/transaction-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { inOpenTransaction, type StagedWrite, transactionError } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { duplicateAnswer, duplicateRights } from './deduplicate.ts';
import { withoutReveal } from './permit.ts';

export interface PermittedCreation {
  creation: TokenCreation;
  transform: Transform;
}

type StagingContext = Omit<CreationContext, 'insert' | 'freeId'>;

export async function createInTransaction(
  exchange: Exchange,
  application: CachedApplication,
  transaction: TransactionKey,
  permitted: PermittedCreation,
  services: Services,
): Promise<Answer> {
  const { creation, transform } = permitted;
  const context = await stagingContext(exchange, application, services);
  const alone = !creation.deduplicate && exchange.idempotency === undefined;
  if (!alone) return createKeyed(exchange, application, transaction, permitted, context, services);
  const refuse = refuseBy(context);
  const stored = await storeToken(creation, {
    ...context,
    insert: async (insert) => {
      const staged = { ...insert, transaction_id: transaction.id };
      return asInsertResult(await services.staging.submit(staged), refuse);
    },
    freeId: (id) => takeFromEnded(services.pool, transaction.tenant_id, id),
  });
  return createdAnswer(stored.row, storedJson(stored, application.tenant_id, transform));
}

/** With a lock of the fingerprint, or the record of an idempotency key: in a transaction of its own. */
async function createKeyed(
  exchange: Exchange,
  application: CachedApplication,
  transaction: TransactionKey,
  permitted: PermittedCreation,
  context: StagingContext,
  services: Services,
): Promise<Answer> {
  const place = stagedPlace(transaction, refuseBy(context));
  const { creation } = permitted;
  const fingerprint = fingerprintOfDraft(creation.draft, context.keys);
  const { answer } = await inOpenTransaction(
    exchange,
    application,
    transaction,
    services,
    async (client) => {
      const [settled] = await storeTokens(client, [{ creation, fingerprint }], context, place);
      if (settled === undefined) throw new Error('a creation without its outcome');
      if (settled.status === 'rejected') throw settled.reason;
      return 'stored' in settled.value
        ? createdWrite(settled.value.stored, permitted, application)
        : duplicateWrite(settled.value.duplicate, permitted, application, services);
    },
  );
  return answer;
}

function createdWrite(
  stored: StoredToken,
  { creation, transform }: PermittedCreation,
  { tenant_id }: CachedApplication,
): StagedWrite {
  const json = storedJson(stored, tenant_id, transform);
  const text = creation.deduplicate ? withMember(json, '_extras', '{"deduplicated":false}') : json;
  const right = createRight(stored.row.container, withoutReveal(transform));
  return { answer: createdAnswer(stored.row, text), rights: [right] };
}

async function duplicateWrite(
  duplicate: TokenRow,
  { creation }: PermittedCreation,
  application: CachedApplication,
  services: Services,
): Promise<StagedWrite> {
  services.countTokens('deduplicate', 1);
  const json = await duplicateAnswer(duplicate, application, services);
  const right = createRight(creation.draft.container, 'redact');
  return {
    answer: createdAnswer(duplicate, json),
    rights: [right, ...duplicateRights(duplicate, application)],
    found: [duplicate],
  };
}

const createRight = (container: string, transform: Transform) =>
  ({ permission: 'token:create', container, transform }) as const;

/** The configuration is confirmed first: a refusal by an old one does not stand. */
function refuseBy({ confirm }: Pick<CreationContext, 'confirm'>): Refuse {
  return (reading, problem) => {
    confirm(reading);
    throw transactionError(problem);
  };
}

async function stagingContext(
  exchange: Exchange,
  application: CachedApplication,
  { dataKeys, clock }: Services,
): Promise<StagingContext> {
  const { tenant_id, application_id, config_version } = application;
  const keys = dataKeys.cached(tenant_id) ?? (await dataKeys.forTenant(tenant_id));
  const confirm = exchange.confirm.bind(exchange, application);
  return { tenant_id, application_id, config_version, keys, clock, confirm };
}
