/**
 * `PATCH /tokens/{id}` with BT-TRANSACTION-ID: a merge patch on what the transaction sees, staged until
 * it is committed. The token is the transaction's until then: whoever else would change it gets 409.
 */
import type { UpdateTokenRequest } from '../../shared/api/tokens.ts';
import type { TenantKeys } from '../../shared/crypto/data-keys.ts';
import { fieldError } from '../../shared/errors.ts';
import type { PoolClient } from '../../shared/postgres/pool.ts';
import { sealCvc } from '../../shared/tokens/seal-cvc.ts';
import { encodeDraft, fingerprintOfDraft } from '../../shared/tokens/token-draft.ts';
import { tokenJson } from '../../shared/tokens/token-json.ts';
import { type TokenRow, writtenRow } from '../../shared/tokens/token-row.ts';
import { readUpdate, type TokenUpdate } from '../../shared/tokens/update-token.ts';
import { findVisibleDuplicates } from '../../shared/transactions/find-duplicates.ts';
import {
  holdToken,
  lockVisible,
  stageChange,
  type VisibleToken,
} from '../../shared/transactions/staged-tokens.ts';
import type { TransactionKey } from '../../shared/transactions/transaction-store.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { inOpenTransaction, type StagedWrite } from '../in-open-transaction.ts';
import type { Services } from '../services.ts';
import { duplicateAnswer, duplicateRights } from './deduplicate.ts';
import { requireTransform, tokenNotFound, withoutReveal } from './permit.ts';

/** What is to be changed, by a valid request. */
export interface TokenPatch {
  id: string;
  patch: UpdateTokenRequest;
}

export async function updateInTransaction(
  exchange: Exchange,
  application: CachedApplication,
  transaction: TransactionKey,
  { id, patch }: TokenPatch,
  services: Services,
): Promise<Answer> {
  const keys = await services.dataKeys.forTenant(application.tenant_id);
  const { answer } = await inOpenTransaction(
    exchange,
    application,
    transaction,
    services,
    async (client) => {
      const visible = await lockVisible(client, transaction, id);
      const { token } = visible;
      if (token === undefined) throw tokenNotFound();
      requireTransform(application, 'token:update', token.container);
      if (visible.operation === null) await holdToken(client, transaction, id, visible.held_by);
      const payload = await services.opener.open(application.tenant_id, token);
      const update = readUpdate(token, payload, patch, application.settings);
      const pending = { update, token, visible, keys, transaction };
      return stageUpdate(client, pending, application, services);
    },
  );
  return answer;
}

interface PendingUpdate {
  update: TokenUpdate;
  token: TokenRow;
  visible: VisibleToken;
  keys: TenantKeys;
  transaction: TransactionKey;
}

/** Stages the patched token, unless it would become a duplicate: then nothing changes. */
async function stageUpdate(
  client: PoolClient,
  { update, token, visible, keys, transaction }: PendingUpdate,
  application: CachedApplication,
  services: Services,
): Promise<StagedWrite> {
  const { tenant_id, application_id } = application;
  const { draft, cvc } = update;
  const { id, created_by, created_at_ms } = token;
  // Moving a token needs the permission in both containers.
  const transform = requireTransform(application, 'token:update', draft.container);
  if (draft.expires_at_ms !== null && draft.expires_at_ms <= visible.now_ms) {
    throw fieldError('expires_at', 'It must be in the future');
  }
  const duplicate = await duplicateOf(client, { update, token, keys, transaction });
  if (duplicate !== undefined) {
    services.countTokens('deduplicate', 1);
    const body = await duplicateAnswer(duplicate, application, services);
    return {
      answer: { status: 200, body },
      rights: [
        updateRight(token.container, 'redact'),
        updateRight(draft.container, 'redact'),
        ...duplicateRights(duplicate, application),
      ],
      found: [duplicate],
    };
  }
  const encoded = encodeDraft(draft, id, tenant_id, keys);
  const operation = visible.operation === 'delete' ? 'update' : (visible.operation ?? 'update');
  const modified_at_ms = await stageChange(client, transaction, {
    ...{ operation, token: encoded, created_by, created_at_ms, modified_by: application_id },
    previous_container: visible.live_container,
    cvc: typeof cvc === 'string' ? sealCvc(keys.current, tenant_id, id, cvc, visible.now_ms) : cvc,
  });
  const audit = { created_by, created_at_ms, modified_by: application_id, modified_at_ms };
  const shown = transform === 'redact' ? undefined : encoded.payload.masked;
  const body = tokenJson(tenant_id, writtenRow(encoded, audit), encoded.payload, shown);
  const rights = [updateRight(token.container, 'redact'), updateRight(draft.container, transform)];
  return { answer: { status: 200, body }, rights };
}

const updateRight = (container: string, transform: Parameters<typeof withoutReveal>[0]) =>
  ({ permission: 'token:update', container, transform: withoutReveal(transform) }) as const;

async function duplicateOf(
  client: PoolClient,
  { update, token, keys, transaction }: Omit<PendingUpdate, 'visible'>,
): Promise<TokenRow | undefined> {
  const fingerprint = update.deduplicate ? fingerprintOfDraft(update.draft, keys) : undefined;
  if (fingerprint === undefined) return undefined;
  const fingerprints = new Set([fingerprint]);
  const found = await findVisibleDuplicates(client, transaction, fingerprints, token.id);
  return found.get(fingerprint);
}
