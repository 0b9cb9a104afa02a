/** `POST /tokens/search`: a page of the tokens a query finds, among those the key may search (facts 7.1). */
import { searchTokens as operation, type SearchTokensRequest } from '../../shared/api/tokens.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import { SIZE_DEFAULT } from '../../shared/http/list-parameters.ts';
import { withFittingPlans } from '../../shared/postgres/pool.ts';
import { listTokens } from '../../shared/tokens/list-tokens.ts';
import { parseSearchQuery } from '../../shared/tokens/search-query.ts';
import { searchTokens as searchRows } from '../../shared/tokens/search-tokens.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import { pageAnswer } from './page-answer.ts';
import { requireHeld } from './permit.ts';
import { readPage } from './read-page.ts';
import { readTokenBody } from './read-token-body.ts';

const validate = compileValidator(operation.body);

export async function searchTokens(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:search');
  const body: SearchTokensRequest = validate(await readTokenBody(exchange, 'json'));
  const page = body.page ?? 1;
  const size = body.size ?? SIZE_DEFAULT;
  const query = parseSearchQuery(body.query ?? '');
  const { tenant_id, access } = application;
  const containers = access.containersFor('token:search');
  const window = { limit: size, offset: (page - 1) * size };
  const { pool, dataKeys } = services;
  const keys = await dataKeys.forTenant(tenant_id);
  const context = { exchange, application, services };
  const found = await readPage(async (bytes_max) => {
    const bounded = { ...window, bytes_max };
    if (query === undefined) {
      return listTokens(pool, tenant_id, { containers, ...UNFILTERED }, bounded);
    }
    return withFittingPlans(pool, (client) =>
      searchRows(client, tenant_id, keys, { containers, query }, bounded),
    );
  }, context);
  const paging = { page, size };
  const shown = await pageAnswer(found, paging, 'token:search', context);
  services.countTokens('search', shown.tokens);
  return shown.answer;
}

const UNFILTERED = { types: undefined, terms: undefined, ids: undefined };
