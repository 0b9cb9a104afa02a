/** The envelope of a page of tokens, each as the key's rules let it be seen (facts 1). */
import type { Permission } from '../../shared/access/permissions.ts';
import type { Paging } from '../../shared/http/list-parameters.ts';
import type { TokenPage } from '../../shared/tokens/list-tokens.ts';
import { revealToken } from '../../shared/tokens/reveal.ts';
import type { TokenRow } from '../../shared/tokens/token-row.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { recordAccess } from '../record-access.ts';
import type { Services } from '../services.ts';

/** Opened and written in one turn of the event loop: some 5 ms. */
const TURN_BYTES = 512 * 1024;

/** Who asks for the page. */
export interface PageContext {
  readonly exchange: Exchange;
  readonly application: CachedApplication;
  readonly services: Services;
}

/** The answer, and how many tokens it shows. The page has no cvc, so none is shown. */
export async function pageAnswer(
  found: TokenPage,
  { page, size }: Paging,
  permission: Permission,
  { exchange, application, services }: PageContext,
): Promise<{ answer: Answer; tokens: number }> {
  const { tenant_id, access } = application;
  const tokens: string[] = [];
  const shown: TokenRow[] = [];
  let bytes = 0;
  for (const row of found.tokens) {
    bytes += row.sealed.length;
    if (bytes > TURN_BYTES) {
      // Others have their turn in between.
      await new Promise(setImmediate);
      bytes = 0;
    }
    const transform = access.decide(permission, row.container);
    if (transform === undefined) continue;
    tokens.push(await revealToken(services.opener, tenant_id, row, transform));
    shown.push(row);
  }
  await recordAccess('read', shown, exchange, application, services);
  const pagination = JSON.stringify({
    total_items: found.total_items,
    page_number: page,
    page_size: size,
    total_pages: size === 0 ? 0 : Math.ceil(found.total_items / size),
  });
  const body = `{"pagination":${pagination},"data":[${tokens.join(',')}]}`;
  return { answer: { status: 200, body }, tokens: tokens.length };
}
