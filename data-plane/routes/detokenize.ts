/**
 * `POST /detokenize`: any JSON with the data of tokens in place of expressions, as the key's rules
 * let it be read (facts 7.3).
 */
import { stringifyJson } from '../../shared/json-text.ts';
import { detokenize as detokenizeBody } from '../../shared/tokens/detokenize.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { recordAccess } from '../record-access.ts';
import type { Services } from '../services.ts';
import { requireHeld } from './permit.ts';
import { readTokenBody } from './read-token-body.ts';

/** Most bytes of a body that is searched for expressions (design section 12). */
const BODY_BYTES_MAX = 5 * 1024 * 1024;

export async function detokenize(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:read');
  const body = await readTokenBody(exchange, 'json', BODY_BYTES_MAX);
  const { tenant_id, access } = application;
  const { readers, opener } = services;
  const { value, token_ids } = await detokenizeBody(body, '', {
    tenant_id,
    access,
    permission: 'token:read',
    readers,
    opener,
    made: services.madeInRun,
    confirm: (reading) => exchange.confirm(application, reading),
    accessed: (tokens) => recordAccess('read', tokens, exchange, application, services),
  });
  if (token_ids.length === 0) exchange.confirm(application, await services.gate.read(tenant_id));
  services.countTokens('detokenize', token_ids.length);
  return { status: 200, body: stringifyJson(value) };
}
