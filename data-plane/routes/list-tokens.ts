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
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import { pageAnswer } from './page-answer.ts';
import { requireHeld } from './permit.ts';
import { readPage } from './read-page.ts';

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
  const context = { exchange, application, services };
  const found = await readPage(
    (bytes_max) => listRows(services.pool, tenant_id, filter, { ...window, bytes_max }),
    context,
  );
  const shown = await pageAnswer(found, { page, size }, 'token:read', context);
  services.countTokens('list', shown.tokens);
  return shown.answer;
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
