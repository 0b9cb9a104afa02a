/** What a create answers: the token as its creator may see it, and where it is. */
import type { Transform } from '../access/access-rules.ts';
import type { TokenPayload } from './sealed-payload.ts';
import { tokenJson } from './token-json.ts';
import type { TokenRow } from './token-row.ts';

/** A token as it was written, and what was sealed in it. */
export interface CreatedToken {
  readonly row: TokenRow;
  readonly token: { readonly payload: TokenPayload };
}

/** Never clear data: the mask is what a creator sees, even under a reveal rule. */
export function storedJson(
  { row, token }: CreatedToken,
  tenantId: string,
  transform: Transform,
): string {
  const shown = transform === 'redact' ? undefined : token.payload.masked;
  return tokenJson(tenantId, row, token.payload, shown);
}

/** Status, place and body of the answer. `body` is the token's JSON, or what stands in for it. */
export function createdAnswer(
  { id }: { readonly id: string },
  body: string,
): { status: number; headers: string[]; body: string } {
  return { status: 201, headers: ['location', `/tokens/${encodeURIComponent(id)}`], body };
}
