/** `POST /tokens`: validate, decide, seal, store; concurrent creates share a statement. */
import type { Transform } from '../../shared/access/access-rules.ts';
import { type CreateTokenRequest, createToken as operation } from '../../shared/api/tokens.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import type { IdempotencyClaim } from '../../shared/idempotency/claim.ts';
import { createdAtIndex, sealAnswer } from '../../shared/idempotency/kept-answer.ts';
import { creationAnswer, mayBeNamed } from '../../shared/idempotency/named-token.ts';
import { readCreation, type TokenCreation } from '../../shared/tokens/create-token.ts';
import { createdAnswer, storedJson } from '../../shared/tokens/created-token.ts';
import { holdsCvc } from '../../shared/tokens/detect-cvc.ts';
import { type CreationContext, storeToken } from '../../shared/tokens/store-token.ts';
import type { EncodedToken } from '../../shared/tokens/token-draft.ts';
import { writtenRow } from '../../shared/tokens/token-row.ts';
import { freeId } from '../../shared/tokens/token-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { transactionOf } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { inWriteTransaction } from '../write-transaction.ts';
import { createInTransaction } from './create-in-transaction.ts';
import { createUnlessDuplicate } from './create-unless-duplicate.ts';
import { requireHeld, requireTransform } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';

const validate = compileValidator(operation.body);

export async function createToken(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:create');
  const transaction = transactionOf(exchange, application);
  const body: CreateTokenRequest = validate(await readTokenBody(exchange, 'json'));
  const creation = readCreation(body, application.settings);
  const transform = requireTransform(application, 'token:create', creation.draft.container);
  if (creation.draft.type === 'token' && holdsCvc(creation.draft.data)) services.countHeldCvc();
  if (transaction !== undefined) {
    const permitted = { creation, transform };
    return createInTransaction(exchange, application, transaction, permitted, services);
  }
  const context = await creationContext(exchange, application, services);
  if (creation.deduplicate) {
    const placement = { creation, transform, context };
    const write = await inWriteTransaction(exchange, application, services, (client) =>
      createUnlessDuplicate(client, placement, application, services),
    );
    services.countTokens(write.operation, 1);
    return write.answer;
  }
  const { idempotency: claim } = exchange;
  const answer =
    claim === undefined
      ? await create(creation, transform, context)
      : await createKeyed(creation, transform, context, claim);
  services.countTokens('create', 1);
  return answer;
}

async function create(
  creation: TokenCreation,
  transform: Transform,
  context: CreationContext,
): Promise<Answer> {
  const stored = await storeToken(creation, context);
  return createdAnswer(stored.row, storedJson(stored, context.tenant_id, transform));
}

/** The same; the statement that stores the token keeps the answer under the key, or names the token. */
async function createKeyed(
  creation: TokenCreation,
  transform: Transform,
  context: CreationContext,
  claim: IdempotencyClaim,
): Promise<Answer> {
  const { scope } = claim;
  const shows_mask = transform !== 'redact';
  const stored = await storeToken(creation, {
    ...context,
    insert(one) {
      const { token } = one;
      const sealed = mayBeNamed(token) ? undefined : sealedAhead(token, shows_mask, context, claim);
      return context.insert({ ...one, record: { scope, shows_mask, sealed } });
    },
  });
  return createdAnswer(stored.row, storedJson(stored, context.tenant_id, transform));
}

/** The answer before the token is stored: the moment of the creation is left open in it. */
function sealedAhead(
  token: EncodedToken,
  showsMask: boolean,
  { tenant_id, application_id }: CreationContext,
  claim: IdempotencyClaim,
): Buffer {
  const audit = { created_at_ms: 0, modified_by: null, modified_at_ms: null };
  const row = writtenRow(token, { created_by: application_id, ...audit });
  const answer = creationAnswer(tenant_id, row, token.payload, showsMask);
  return sealAnswer(claim, { ...answer, effect_at_index: createdAtIndex(answer.body) });
}

async function creationContext(
  exchange: Exchange,
  application: CachedApplication,
  { dataKeys, clock, writer, pool }: Services,
): Promise<CreationContext> {
  const { tenant_id, application_id, config_version } = application;
  const audit = { trace_id: exchange.head.traceId, via: exchange.callingRun?.via };
  return {
    tenant_id,
    application_id,
    config_version,
    keys: dataKeys.cached(tenant_id) ?? (await dataKeys.forTenant(tenant_id)),
    clock,
    insert: (insert) => writer.submit({ ...insert, audit }),
    freeId: (id) => freeId(pool, tenant_id, id),
    confirm: (reading) => exchange.confirm(application, reading),
  };
}
