/** `POST /tokens`: validate, decide, seal, store; concurrent creates share a statement. */

import type { Transform } from '../../shared/access/access-rules.ts';
import { type CreateTokenRequest, createToken as operation } from '../../shared/api/tokens.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import { readCreation } from '../../shared/tokens/create-token.ts';
import { holdsCvc } from '../../shared/tokens/detect-cvc.ts';
import {
  type CreationContext,
  type StoredToken,
  storeToken,
} from '../../shared/tokens/store-token.ts';
import { tokenJson, withMember } from '../../shared/tokens/token-json.ts';
import { deleteIfExpired } from '../../shared/tokens/token-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import { duplicateAnswer, storeUnlessDuplicate } from './deduplicate.ts';
import { refuseTransaction, requireHeld, requireTransform } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';

const validate = compileValidator(operation.body);

export async function createToken(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:create');
  refuseTransaction(exchange.head.transactionId);
  const body: CreateTokenRequest = validate(await readTokenBody(exchange, 'json'));
  const creation = readCreation(body, application.settings);
  const transform = requireTransform(application, 'token:create', creation.draft.container);
  if (creation.draft.type === 'token' && holdsCvc(creation.draft.data)) services.countHeldCvc();
  const context = await creationContext(exchange, application, services);
  if (!creation.deduplicate) {
    const stored = await storeToken(creation, context);
    return created(stored, storedJson(stored, application.tenant_id, transform), services);
  }
  const outcome = await storeUnlessDuplicate(creation, context, services);
  if ('stored' in outcome) {
    const json = storedJson(outcome.stored, application.tenant_id, transform);
    const answer = withMember(json, '_extras', '{"deduplicated":false}');
    return created(outcome.stored, answer, services);
  }
  services.countTokens('deduplicate', 1);
  const json = await duplicateAnswer(outcome.duplicate, application, services);
  return { status: 201, headers: ['location', locationOf(outcome.duplicate.id)], body: json };
}

/** Never clear data: the mask is what a creator sees, even under a reveal rule. */
export function storedJson(
  { row, token }: StoredToken,
  tenantId: string,
  transform: Transform,
): string {
  const shown = transform === 'redact' ? undefined : token.payload.masked;
  return tokenJson(tenantId, row, token.payload, shown);
}

function created({ row }: StoredToken, body: string, services: Services): Answer {
  services.countTokens('create', 1);
  return { status: 201, headers: ['location', locationOf(row.id)], body };
}

const locationOf = (id: string): string => `/tokens/${encodeURIComponent(id)}`;

async function creationContext(
  exchange: Exchange,
  application: CachedApplication,
  { dataKeys, clock, writer, pool }: Services,
): Promise<CreationContext> {
  const { tenant_id, application_id, config_version } = application;
  return {
    tenant_id,
    application_id,
    config_version,
    keys: dataKeys.cached(tenant_id) ?? (await dataKeys.forTenant(tenant_id)),
    clock,
    insert: (insert) => writer.submit(insert),
    deleteIfExpired: (id) => deleteIfExpired(pool, tenant_id, id),
    confirm: (reading) => exchange.confirm(application, reading),
  };
}
