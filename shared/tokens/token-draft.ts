/**
 * A token as it is about to be stored: validated members, before anything is evaluated or sealed.
 * `encodeDraft` turns it into the columns of a row, with its expressions evaluated, its fingerprint
 * and blind indexes made and its contents sealed. Nothing readable of `data` leaves this file.
 */

import type { TenantKeys } from '../crypto/data-keys.ts';
import { seal } from '../crypto/envelope.ts';
import { fieldError } from '../errors.ts';
import { stringifyJson } from '../json-text.ts';
import { evaluateFingerprint, evaluateSearchTerms, evaluateTokenMask } from './evaluate.ts';
import { refuseExposure } from './exposed-numbers.ts';
import { fingerprintOf, metadataTerm } from './fingerprint.ts';
import { foldMetadataValue } from './metadata.ts';
import { packPayload, type TokenPayload, tokenLabel } from './sealed-payload.ts';
import type { TokenType } from './token-types.ts';

/**
 * Most bytes of the JSON of `data` and of `mask`, as of a request body (design section 12): merge
 * patches must not make either grow without end.
 */
const JSON_BYTES_MAX = 1024 * 1024;

export interface TokenDraft {
  type: TokenType;
  /** Without `cvc`. */
  data: unknown;
  /** `undefined`: no mask, so masked reads show no data. */
  mask: unknown;
  container: string;
  metadata: Record<string, string> | undefined;
  search_indexes: string[];
  /** `undefined`: the tenant computes no fingerprints. */
  fingerprint_expression: string | undefined;
  expires_at_ms: number | null;
}

/** The stored form of a draft. Buffers are sealed or blind; texts are what the answer shows. */
export interface EncodedToken {
  id: string;
  type: TokenType;
  container: string;
  metadata: string | null;
  search_indexes: string;
  fingerprint: string | null;
  fingerprint_expression: string | null;
  sealed: Buffer;
  terms: Buffer[];
  expires_at_ms: number | null;
  /** What was sealed, for the answer to the request at hand. */
  payload: TokenPayload;
}

/**
 * Evaluates, indexes and seals. Throws a validation error that names the member when an expression
 * yields something that may not be stored, or when a clear column would show the card number.
 */
export function encodeDraft(
  draft: TokenDraft,
  id: string,
  tenantId: string,
  keys: TenantKeys,
): EncodedToken {
  const data = boundedJson('data', draft.data);
  const mask = draft.mask === undefined ? undefined : boundedJson('mask', draft.mask);
  const masked = draft.mask === undefined ? undefined : evaluateTokenMask(draft);
  refuseExposure(draft, id, masked);
  const payload: TokenPayload = {
    data,
    mask,
    masked: masked === undefined ? undefined : stringifyJson(masked),
  };
  const fingerprint = fingerprintOfDraft(draft, keys);
  const label = tokenLabel(tenantId, { ...draft, id });
  return {
    id,
    type: draft.type,
    container: draft.container,
    metadata: draft.metadata === undefined ? null : JSON.stringify(draft.metadata),
    search_indexes: JSON.stringify(draft.search_indexes),
    fingerprint: fingerprint ?? null,
    fingerprint_expression: draft.fingerprint_expression ?? null,
    sealed: seal(keys.current, packPayload(payload), label),
    terms: [...evaluateSearchTerms(draft, keys.search), ...metadataTerms(draft, keys)],
    expires_at_ms: draft.expires_at_ms,
    payload,
  };
}

function boundedJson(path: string, value: unknown): string {
  const text = stringifyJson(value);
  if (Buffer.byteLength(text) > JSON_BYTES_MAX) throw fieldError(path, 'It is larger than 1 MiB');
  return text;
}

/** The fingerprint a draft will have; `undefined` when it has no expression for one. */
export function fingerprintOfDraft(draft: TokenDraft, keys: TenantKeys): string | undefined {
  const expression = draft.fingerprint_expression;
  if (expression === undefined) return undefined;
  return fingerprintOf(keys.fingerprint, draft.type, evaluateFingerprint(draft, expression));
}

function metadataTerms({ metadata = {} }: TokenDraft, { search }: TenantKeys): Buffer[] {
  return Object.entries(metadata).map(([name, value]) =>
    metadataTerm(search, name, foldMetadataValue(value)),
  );
}
