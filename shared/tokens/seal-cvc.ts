/**
 * Card verification codes live apart from their tokens, for one hour: sealed to the token and to the
 * moment they are due, in a table without WAL.
 */
import { seal, type VersionedKey } from '../crypto/envelope.ts';
import { cvcLabel } from './sealed-payload.ts';

/** A card verification code is deleted one hour after it was stored (spec: Limits). */
export const CVC_LIFETIME_MS = 3_600_000;

export interface SealedCvc {
  sealed: Buffer;
  /** Milliseconds since the epoch, by the database's clock. */
  due_at_ms: number;
}

/** `nowMs` is the database's time, or a good estimate that the insert checks. */
export function sealCvc(
  key: VersionedKey,
  tenantId: string,
  tokenId: string,
  cvc: string,
  nowMs: number,
): SealedCvc {
  const due_at_ms = Math.round(nowMs) + CVC_LIFETIME_MS;
  return { sealed: seal(key, Buffer.from(cvc), cvcLabel(tenantId, tokenId, due_at_ms)), due_at_ms };
}
