/**
 * `PATCH /tokens/{id}`: a merge patch on the locked row, so that parallel patches follow one another
 * and none is lost (spec: Tokens; RFC 7396).
 */
import { updateToken as operation, type UpdateTokenRequest } from '../../shared/api/tokens.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import type { TenantKeys } from '../../shared/crypto/data-keys.ts';
import { fieldError } from '../../shared/errors.ts';
import { inTransaction, type PoolClient } from '../../shared/postgres/pool.ts';
import { type SealedCvc, sealCvc } from '../../shared/tokens/seal-cvc.ts';
import { encodeDraft } from '../../shared/tokens/token-draft.ts';
import { tokenIdProblem } from '../../shared/tokens/token-id.ts';
import { tokenJson } from '../../shared/tokens/token-json.ts';
import { type TokenRow, writtenRow } from '../../shared/tokens/token-row.ts';
import { type LockedToken, lockToken, replaceToken } from '../../shared/tokens/token-store.ts';
import { readUpdate, type TokenUpdate } from '../../shared/tokens/update-token.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import { duplicateAnswer, findDuplicate } from './deduplicate.ts';
import { refuseTransaction, requireHeld, requireTransform, tokenNotFound } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';

const validate = compileValidator(operation.body);

export async function updateToken(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:update');
  refuseTransaction(exchange.head.transactionId);
  const patch: UpdateTokenRequest = validate(await readTokenBody(exchange, 'merge_patch'));
  const { id = '' } = exchange.params;
  if (tokenIdProblem(id) !== undefined) throw tokenNotFound();
  const { tenant_id } = application;
  const keys = await services.dataKeys.forTenant(tenant_id);
  const outcome = await inTransaction(services.pool, async (client) => {
    const locked = await lockToken(client, tenant_id, id);
    exchange.confirm(application, locked);
    const { token } = locked;
    if (token === undefined) throw tokenNotFound();
    requireTransform(application, 'token:update', token.container);
    const payload = await services.opener.open(tenant_id, token);
    const update = readUpdate(token, payload, patch, application.settings);
    return applyUpdate(client, { update, token, locked, keys }, application);
  });
  if ('duplicate' in outcome) {
    services.countTokens('deduplicate', 1);
    return { status: 200, body: await duplicateAnswer(outcome.duplicate, application, services) };
  }
  services.countTokens('update', 1);
  return { status: 200, body: outcome.json };
}

interface PendingUpdate {
  update: TokenUpdate;
  token: TokenRow;
  locked: LockedToken;
  keys: TenantKeys;
}

/** Writes the patched token, unless it would become a duplicate: then nothing changes. */
async function applyUpdate(
  client: PoolClient,
  { update, token, locked, keys }: PendingUpdate,
  application: CachedApplication,
): Promise<{ json: string } | { duplicate: TokenRow }> {
  const { tenant_id, application_id } = application;
  const { draft } = update;
  // Moving a token needs the permission in both containers.
  const transform = requireTransform(application, 'token:update', draft.container);
  if (draft.expires_at_ms !== null && draft.expires_at_ms <= locked.now_ms) {
    throw fieldError('expires_at', 'It must be in the future');
  }
  if (update.deduplicate) {
    const duplicate = await findDuplicate(client, { tenant_id, keys }, draft, token.id);
    if (duplicate !== undefined) return { duplicate };
  }
  const encoded = encodeDraft(draft, token.id, tenant_id, keys);
  const modified_at_ms = await replaceToken(client, tenant_id, {
    token: encoded,
    cvc: sealedCvc(update, token.id, tenant_id, locked.now_ms, keys),
    modified_by: application_id,
    previous_container: token.container,
  });
  const { created_by, created_at_ms } = token;
  const row = writtenRow(encoded, {
    created_by,
    created_at_ms,
    modified_by: application_id,
    modified_at_ms,
  });
  const shown = transform === 'redact' ? undefined : encoded.payload.masked;
  return { json: tokenJson(tenant_id, row, encoded.payload, shown) };
}

function sealedCvc(
  { cvc }: TokenUpdate,
  tokenId: string,
  tenantId: string,
  nowMs: number,
  { current }: TenantKeys,
): SealedCvc | null | undefined {
  if (cvc === undefined || cvc === null) return cvc;
  return sealCvc(current, tenantId, tokenId, cvc, nowMs);
}
