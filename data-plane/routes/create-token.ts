/** `POST /tokens`: validate, decide, seal, store; concurrent creates share a statement. */
import type { Transform } from '../../shared/access/access-rules.ts';
import { type CreateTokenRequest, createToken as operation } from '../../shared/api/tokens.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import type { IdempotencyClaim } from '../../shared/idempotency/claim.ts';
import {
  createdAtIndex,
  sealAnswer,
  writeEffectTime,
} from '../../shared/idempotency/kept-answer.ts';
import { readCreation, type TokenCreation } from '../../shared/tokens/create-token.ts';
import { holdsCvc } from '../../shared/tokens/detect-cvc.ts';
import { type CreationContext, storeToken } from '../../shared/tokens/store-token.ts';
import { writtenRow } from '../../shared/tokens/token-row.ts';
import { freeId } from '../../shared/tokens/token-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { transactionOf } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { inWriteTransaction } from '../write-transaction.ts';
import { createInTransaction } from './create-in-transaction.ts';
import { createUnlessDuplicate } from './create-unless-duplicate.ts';
import { createdAnswer, storedJson } from './created-token.ts';
import { requireHeld, requireTransform, withoutReveal } from './permit.ts';
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

/**
 * The same, and the answer is kept by the statement that stores the token. It is sealed before, so the
 * moment of the creation is left open in it.
 */
async function createKeyed(
  creation: TokenCreation,
  transform: Transform,
  context: CreationContext,
  claim: IdempotencyClaim,
): Promise<Answer> {
  const { tenant_id, application_id } = context;
  const audit = { created_at_ms: 0, modified_by: null, modified_at_ms: null };
  const right = { permission: 'token:create', transform: withoutReveal(transform) } as const;
  let body = '';
  let effect_at_index = 0;
  const insert: CreationContext['insert'] = (one) => {
    const { token } = one;
    const row = writtenRow(token, { created_by: application_id, ...audit });
    body = storedJson({ row, token }, tenant_id, transform);
    effect_at_index = createdAtIndex(body);
    const rights = [{ ...right, container: token.container }];
    const sealed = sealAnswer(claim, { ...createdAnswer(row, body), rights, effect_at_index });
    return context.insert({ ...one, record: { scope: claim.scope, sealed } });
  };
  const { row } = await storeToken(creation, { ...context, insert });
  return createdAnswer(row, writeEffectTime(body, effect_at_index, row.created_at_ms));
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
