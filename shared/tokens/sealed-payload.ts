/**
 * The sealed part of a token: `data`, its `mask` and the mask already evaluated, as JSON texts, so
 * that a read neither parses nor evaluates anything and every number stays exact.
 *
 * Layout before sealing: byte lengths of mask and masked data (4 bytes each, big-endian; 0 = absent,
 * as no JSON text is empty) | mask | masked data | data.
 */
import { sealLabel } from '../crypto/envelope.ts';

const LENGTHS_BYTES = 8;

export interface TokenPayload {
  /** JSON texts. */
  data: string;
  mask: string | undefined;
  masked: string | undefined;
}

export function packPayload({ data, mask = '', masked = '' }: TokenPayload): Buffer {
  const maskBytes = Buffer.byteLength(mask);
  const maskedBytes = Buffer.byteLength(masked);
  const packed = Buffer.allocUnsafe(
    LENGTHS_BYTES + maskBytes + maskedBytes + Buffer.byteLength(data),
  );
  packed.writeUInt32BE(maskBytes, 0);
  packed.writeUInt32BE(maskedBytes, 4);
  packed.write(mask + masked + data, LENGTHS_BYTES);
  return packed;
}

export function unpackPayload(packed: Buffer): TokenPayload {
  const maskEnd = LENGTHS_BYTES + packed.readUInt32BE(0);
  const maskedEnd = maskEnd + packed.readUInt32BE(4);
  const text = (start: number, end: number): string | undefined =>
    start === end ? undefined : packed.toString('utf8', start, end);
  return {
    mask: text(LENGTHS_BYTES, maskEnd),
    masked: text(maskEnd, maskedEnd),
    data: packed.toString('utf8', maskedEnd),
  };
}

/** What a token's sealed payload is bound to. `expiresAtMs` is milliseconds since the epoch. */
export function tokenLabel(
  tenantId: string,
  token: { id: string; type: string; container: string; expires_at_ms: number | null },
): Buffer {
  const expiry = token.expires_at_ms === null ? '' : String(token.expires_at_ms);
  return sealLabel('token', tenantId, token.id, token.type, token.container, expiry);
}

/** What a card verification code is bound to: its token and the moment it is due. */
export function cvcLabel(tenantId: string, tokenId: string, dueAtMs: number): Buffer {
  return sealLabel('token-cvc', tenantId, tokenId, String(dueAtMs));
}
