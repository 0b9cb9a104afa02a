/** What a create answers: the token as its creator may see it, and where it is. */
import type { Transform } from '../../shared/access/access-rules.ts';
import type { StoredToken } from '../../shared/tokens/store-token.ts';
import { tokenJson } from '../../shared/tokens/token-json.ts';
import type { Answer } from '../exchange.ts';

/** Never clear data: the mask is what a creator sees, even under a reveal rule. */
export function storedJson(
  { row, token }: StoredToken,
  tenantId: string,
  transform: Transform,
): string {
  const shown = transform === 'redact' ? undefined : token.payload.masked;
  return tokenJson(tenantId, row, token.payload, shown);
}

/** `body` is its JSON, or what stands in for it. */
export function createdAnswer({ id }: { readonly id: string }, body: string): Answer {
  return { status: 201, headers: ['location', `/tokens/${encodeURIComponent(id)}`], body };
}
