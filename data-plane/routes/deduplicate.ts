/**
 * Creates and updates that must not store the same contents twice (facts 5.5). Writers of one
 * fingerprint wait for each other in the database; the match never leaves the tenant.
 */
import { readConfigVersions } from '../../shared/config-entries/config-version.ts';
import type { UsedRight } from '../../shared/idempotency/kept-answer.ts';
import type { Queryable } from '../../shared/postgres/pool.ts';
import type { TokenCreation } from '../../shared/tokens/create-token.ts';
import { revealToken } from '../../shared/tokens/reveal.ts';
import {
  type CreationContext,
  type StoredToken,
  storeToken,
} from '../../shared/tokens/store-token.ts';
import { fingerprintOfDraft, type TokenDraft } from '../../shared/tokens/token-draft.ts';
import { duplicateJson, withMember } from '../../shared/tokens/token-json.ts';
import type { TokenRow } from '../../shared/tokens/token-row.ts';
import { findByFingerprint, freeId, lockFingerprint } from '../../shared/tokens/token-store.ts';
import { insertTokens } from '../../shared/tokens/token-writer.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Services } from '../services.ts';
import type { WrittenToken } from '../write-transaction.ts';
import { withoutReveal } from './permit.ts';

/** The live token with the draft's contents, other than `exceptId`; locks out other writers of it. */
export async function findDuplicate(
  client: Queryable,
  context: Pick<CreationContext, 'tenant_id' | 'keys'>,
  draft: TokenDraft,
  exceptId?: string,
): Promise<TokenRow | undefined> {
  const fingerprint = fingerprintOfDraft(draft, context.keys);
  if (fingerprint === undefined) return undefined;
  await lockFingerprint(client, context.tenant_id, fingerprint);
  return findByFingerprint(client, context.tenant_id, fingerprint, exceptId);
}

/** Stores the token, or finds the one that has its contents already. */
export async function storeUnlessDuplicate(
  client: Queryable,
  creation: TokenCreation,
  context: CreationContext,
): Promise<{ stored: StoredToken } | { duplicate: TokenRow }> {
  const { tenant_id } = context;
  const duplicate = await findDuplicate(client, context, creation.draft);
  if (duplicate === undefined) {
    const stored = await storeToken(creation, {
      ...context,
      insert: async (insert) => {
        const [result] = await insertTokens(client, [insert]);
        if (result === undefined) throw new Error('an insert without its result');
        return result;
      },
      freeId: (id) => freeId(client, tenant_id, id),
    });
    return { stored };
  }
  const [reading] = await readConfigVersions(client, [tenant_id]);
  if (reading !== undefined) context.confirm(reading);
  return { duplicate };
}

/**
 * What the caller sees of the token its request duplicates: never clear data, and without
 * `token:read` only that it exists.
 */
export async function duplicateAnswer(
  duplicate: TokenRow,
  { tenant_id, access }: CachedApplication,
  services: Services,
): Promise<string> {
  const transform = access.decide('token:read', duplicate.container);
  const json =
    transform === undefined
      ? duplicateJson(tenant_id, duplicate)
      : await revealToken(services.opener, tenant_id, duplicate, withoutReveal(transform));
  return withMember(json, '_extras', '{"deduplicated":true}');
}

/** How much of it that answer shows: its existence alone counts as redacted. */
export function writtenDuplicate(
  { id, container }: TokenRow,
  { access }: CachedApplication,
): WrittenToken {
  const transform = withoutReveal(access.decide('token:read', container) ?? 'redact');
  return { id, container, transform };
}

/** What it takes to be shown that answer again. */
export function duplicateRights(
  { container }: TokenRow,
  { access }: CachedApplication,
): UsedRight[] {
  const transform = access.decide('token:read', container);
  if (transform === undefined) return [];
  return [{ permission: 'token:read', container, transform: withoutReveal(transform) }];
}
