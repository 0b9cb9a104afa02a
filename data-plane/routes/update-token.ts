/**
 * `PATCH /tokens/{id}`: a merge patch on the locked row, so that parallel patches follow one another
 * and none is lost (spec: Tokens; RFC 7396).
 */
import type { Transform } from '../../shared/access/access-rules.ts';
import { updateToken as operation, type UpdateTokenRequest } from '../../shared/api/tokens.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import type { TenantKeys } from '../../shared/crypto/data-keys.ts';
import { fieldError } from '../../shared/errors.ts';
import type { UsedRight } from '../../shared/idempotency/kept-answer.ts';
import { writeDownAnswers } from '../../shared/idempotency/named-token.ts';
import type { PoolClient } from '../../shared/postgres/pool.ts';
import { type SealedCvc, sealCvc } from '../../shared/tokens/seal-cvc.ts';
import { encodeDraft, type TokenDraft } from '../../shared/tokens/token-draft.ts';
import { tokenIdProblem } from '../../shared/tokens/token-id.ts';
import { tokenJson } from '../../shared/tokens/token-json.ts';
import { type TokenRow, writtenRow } from '../../shared/tokens/token-row.ts';
import { type LockedToken, lockToken, replaceToken } from '../../shared/tokens/token-store.ts';
import { readUpdate, type TokenUpdate } from '../../shared/tokens/update-token.ts';
import { tokenHeld } from '../../shared/transactions/transaction-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { transactionOf } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { inWriteTransaction, type Write } from '../write-transaction.ts';
import {
  duplicateAnswer,
  duplicateRights,
  findDuplicate,
  writtenDuplicate,
} from './deduplicate.ts';
import { requireHeld, requireTransform, tokenNotFound, withoutReveal } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';
import { updateInTransaction } from './update-in-transaction.ts';

const validate = compileValidator(operation.body);

export async function updateToken(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:update');
  const transaction = transactionOf(exchange, application);
  const patch: UpdateTokenRequest = validate(await readTokenBody(exchange, 'merge_patch'));
  const { id = '' } = exchange.params;
  if (tokenIdProblem(id) !== undefined) throw tokenNotFound();
  if (transaction !== undefined) {
    return updateInTransaction(exchange, application, transaction, { id, patch }, services);
  }
  const { tenant_id } = application;
  const keys = await services.dataKeys.forTenant(tenant_id);
  const write = await inWriteTransaction(exchange, application, services, async (client) => {
    const locked = await lockToken(client, tenant_id, id);
    exchange.confirm(application, locked);
    const { token } = locked;
    if (token === undefined) throw tokenNotFound();
    requireTransform(application, 'token:update', token.container);
    if (locked.held) throw tokenHeld();
    const payload = await services.opener.open(tenant_id, token);
    const update = readUpdate(token, payload, patch, application.settings);
    return applyUpdate(client, { update, token, locked, keys }, application, services);
  });
  services.countTokens(write.operation, 1);
  return write.answer;
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
  services: Services,
): Promise<Write> {
  const { tenant_id, application_id } = application;
  const { draft } = update;
  // Moving a token needs the permission in both containers.
  const transform = requireTransform(application, 'token:update', draft.container);
  if (draft.expires_at_ms !== null && draft.expires_at_ms <= locked.now_ms) {
    throw fieldError('expires_at', 'It must be in the future');
  }
  if (update.deduplicate) {
    const duplicate = await findDuplicate(client, { tenant_id, keys }, draft, token.id);
    if (duplicate !== undefined) {
      return {
        answer: { status: 200, body: await duplicateAnswer(duplicate, application, services) },
        operation: 'deduplicate',
        tokens: [writtenDuplicate(duplicate, application)],
        rights: [...moved(token, draft, 'redact'), ...duplicateRights(duplicate, application)],
      };
    }
  }
  const encoded = encodeDraft(draft, token.id, tenant_id, keys);
  await writeDownAnswers(client, tenant_id, locked.named, { keys, opener: services.opener });
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
  return {
    answer: { status: 200, body: tokenJson(tenant_id, row, encoded.payload, shown) },
    operation: 'update',
    tokens: [{ id: token.id, container: draft.container, transform }],
    rights: moved(token, draft, withoutReveal(transform)),
  };
}

/** Both containers of a token, which are mostly the same. */
function moved(from: TokenRow, to: TokenDraft, transform: Transform): UsedRight[] {
  const permission = 'token:update';
  return [
    { permission, container: from.container, transform: 'redact' },
    { permission, container: to.container, transform },
  ];
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
