/** The envelope of a page of tokens, each as the key's rules let it be seen (facts 1). */
import type { Permission } from '../../shared/access/permissions.ts';
import type { Paging } from '../../shared/http/list-parameters.ts';
import type { TokenPage } from '../../shared/tokens/list-tokens.ts';
import { revealToken } from '../../shared/tokens/reveal.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer } from '../exchange.ts';
import type { Services } from '../services.ts';

/** The answer, and how many tokens it shows. The page has no cvc, so none is shown. */
export async function pageAnswer(
  found: TokenPage,
  { page, size }: Paging,
  permission: Permission,
  { tenant_id, access }: CachedApplication,
  { opener }: Services,
): Promise<{ answer: Answer; tokens: number }> {
  const tokens: string[] = [];
  for (const row of found.tokens) {
    const transform = access.decide(permission, row.container);
    if (transform === undefined) continue;
    tokens.push(await revealToken(opener, tenant_id, row, transform));
  }
  const pagination = JSON.stringify({
    total_items: found.total_items,
    page_number: page,
    page_size: size,
    total_pages: size === 0 ? 0 : Math.ceil(found.total_items / size),
  });
  const body = `{"pagination":${pagination},"data":[${tokens.join(',')}]}`;
  return { answer: { status: 200, body }, tokens: tokens.length };
}
