/** Pages of tokens: small ones are read at once, large ones when there is room for them. */
import type { TokenPage } from '../../shared/tokens/list-tokens.ts';
import type { PageContext } from './page-answer.ts';

/** More than this is told first, and read by a second statement. */
const SMALL_PAGE_BYTES = 1024 * 1024;

/**
 * The page, confirmed. `read` answers no tokens where they have more bytes than it is given, 16 MiB if
 * nothing. Room that was taken is given back when the exchange is over. Throws 429 when there is none.
 */
export async function readPage(
  read: (bytes_max?: number) => Promise<TokenPage>,
  { exchange, application, services }: PageContext,
): Promise<TokenPage> {
  const found = await read(SMALL_PAGE_BYTES);
  exchange.confirm(application, found);
  const { page_bytes } = found;
  if (page_bytes <= SMALL_PAGE_BYTES) return found;
  // A route that runs again has it already.
  if (!exchange.isHolding) {
    exchange.hold(await services.pageRoom.enter(application.tenant_id, page_bytes));
  }
  const page = await read();
  exchange.confirm(application, page);
  return page;
}
