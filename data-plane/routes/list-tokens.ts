/** `GET /tokens`: a page of the tokens the key may read, each as its rule says (spec: Tokens). */
import {
  readIds,
  readMetadataFilters,
  readPaging,
  readValues,
} from '../../shared/http/list-parameters.ts';
import { parseQuery } from '../../shared/http/query.ts';
import { metadataTerm } from '../../shared/tokens/fingerprint.ts';
import { listTokens as listRows, type TokenFilter } from '../../shared/tokens/list-tokens.ts';
import { foldMetadataValue } from '../../shared/tokens/metadata.ts';
import { revealToken } from '../../shared/tokens/reveal.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import { requireHeld } from './permit.ts';

export async function listTokens(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:read');
  const query = parseQuery(exchange.head.query);
  const { page, size } = readPaging(query);
  const { tenant_id, access } = application;
  const metadata = readMetadataFilters(query);
  const filter: TokenFilter = {
    containers: access.containersFor('token:read'),
    types: readValues(query, 'type'),
    ids: readIds(query),
    terms: metadata.size === 0 ? undefined : await metadataTerms(metadata, tenant_id, services),
  };
  const window = { limit: size, offset: (page - 1) * size };
  const found = await listRows(services.pool, tenant_id, filter, window);
  exchange.confirm(application, found);

  const tokens: string[] = [];
  for (const row of found.tokens) {
    const transform = access.decide('token:read', row.container);
    if (transform === undefined) continue;
    tokens.push(await revealToken(services.opener, tenant_id, row, transform));
  }
  services.countTokens('list', tokens.length);
  const pagination = JSON.stringify({
    total_items: found.total_items,
    page_number: page,
    page_size: size,
    total_pages: size === 0 ? 0 : Math.ceil(found.total_items / size),
  });
  return { status: 200, body: `{"pagination":${pagination},"data":[${tokens.join(',')}]}` };
}

async function metadataTerms(
  metadata: ReadonlyMap<string, string>,
  tenantId: string,
  { dataKeys }: Services,
): Promise<Buffer[]> {
  const { search } = await dataKeys.forTenant(tenantId);
  return Array.from(metadata, ([name, value]) =>
    metadataTerm(search, name, foldMetadataValue(value)),
  );
}
