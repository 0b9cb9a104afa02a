/**
 * Applies a merge patch to a stored token (RFC 7396 on `data`, `mask` and `metadata`; the other
 * members are replaced; facts 5.7). The result is validated like a new token of the same type.
 */
import type { UpdateTokenRequest } from '../api/tokens.ts';
import { fieldError } from '../errors.ts';
import { mergePatch } from '../merge-patch.ts';
import {
  readContainer,
  readDeduplicate,
  readExpiresAt,
  readFingerprintExpression,
  readMask,
  readSearchIndexes,
  type TokenSettings,
} from './create-token.ts';
import { validateMetadata } from './metadata.ts';
import type { TokenPayload } from './sealed-payload.ts';
import { readTokenData } from './token-data.ts';
import type { TokenDraft } from './token-draft.ts';
import type { TokenRow } from './token-row.ts';
import type { TokenType } from './token-types.ts';

export interface TokenUpdate {
  draft: TokenDraft;
  /** `undefined` keeps a live cvc, `null` removes it, a text replaces it and restarts its hour. */
  cvc: string | null | undefined;
  deduplicate: boolean;
}

/** Throws a validation error when the patched token would not be valid. */
export function readUpdate(
  row: TokenRow,
  payload: TokenPayload,
  patch: UpdateTokenRequest,
  settings: TokenSettings,
): TokenUpdate {
  const type = row.type as TokenType;
  const deduplicate = readDeduplicate(patch.deduplicate_token, settings);
  const { data, cvc } = patchData(type, payload, patch);
  return {
    draft: {
      type,
      data,
      mask: patchMask(payload, patch),
      container:
        patch.containers === undefined ? row.container : readContainer(patch.containers, type),
      metadata: patchMetadata(row, patch),
      search_indexes:
        patch.search_indexes === undefined
          ? (JSON.parse(row.search_indexes) as string[])
          : readSearchIndexes(patch.search_indexes ?? []),
      fingerprint_expression: patchFingerprintExpression(row, patch, settings, deduplicate),
      expires_at_ms:
        patch.expires_at === undefined ? row.expires_at_ms : readExpiresAt(patch.expires_at),
    },
    cvc,
    deduplicate,
  };
}

/** Validated again only when the patch changes it: stored data was valid when it was stored. */
function patchData(
  type: TokenType,
  payload: TokenPayload,
  patch: UpdateTokenRequest,
): { data: unknown; cvc: string | null | undefined } {
  const stored: unknown = JSON.parse(payload.data);
  if (patch.data === undefined) return { data: stored, cvc: undefined };
  if (patch.data === null) throw fieldError('data', 'It is required');
  const { data, cvc } = readTokenData(type, mergePatch(stored, patch.data));
  return { data, cvc: cvc ?? (removesCvc(type, patch.data) ? null : undefined) };
}

function removesCvc(type: TokenType, patch: unknown): boolean {
  if (type !== 'card' || typeof patch !== 'object' || patch === null) return false;
  return Object.hasOwn(patch, 'cvc') && (patch as { cvc: unknown }).cvc === null;
}

function patchMask(payload: TokenPayload, patch: UpdateTokenRequest): unknown {
  const stored: unknown = payload.mask === undefined ? undefined : JSON.parse(payload.mask);
  if (patch.mask === undefined) return stored;
  if (patch.mask === null) return undefined;
  return readMask(mergePatch(stored, patch.mask));
}

function patchMetadata(
  row: TokenRow,
  patch: UpdateTokenRequest,
): Record<string, string> | undefined {
  const stored = row.metadata === null ? {} : (JSON.parse(row.metadata) as object);
  if (patch.metadata === undefined) {
    return row.metadata === null ? undefined : (stored as Record<string, string>);
  }
  if (patch.metadata === null) return undefined;
  return validateMetadata(mergePatch(stored, patch.metadata));
}

function patchFingerprintExpression(
  row: TokenRow,
  patch: UpdateTokenRequest,
  settings: TokenSettings,
  deduplicate: boolean,
): string | undefined {
  if (patch.fingerprint_expression === undefined && row.fingerprint_expression !== null) {
    return row.fingerprint_expression;
  }
  const type = row.type as TokenType;
  return readFingerprintExpression(patch.fingerprint_expression, type, settings, deduplicate);
}
