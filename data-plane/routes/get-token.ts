/** `GET /tokens/{id}`: one token as the key's rules let it be seen (spec: Tokens). */
import { revealToken } from '../../shared/tokens/reveal.ts';
import { tokenIdProblem } from '../../shared/tokens/token-id.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { recordAccess } from '../record-access.ts';
import type { Services } from '../services.ts';
import { requireHeld, requireTransform, tokenNotFound } from './permit.ts';

export async function getToken(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:read');
  const { id = '' } = exchange.params;
  if (tokenIdProblem(id) !== undefined) throw tokenNotFound();
  const { tenant_id } = application;
  const reading = await services.readers.whole.submit({ tenant_id, id });
  exchange.confirm(application, reading);
  const { token } = reading;
  if (token === undefined) throw tokenNotFound();
  const transform = requireTransform(application, 'token:read', token.container);
  const revealed = revealToken(services.opener, tenant_id, token, transform);
  const body = typeof revealed === 'string' ? revealed : await revealed;
  services.countTokens('read', 1);
  const recording = recordAccess('read', [token], exchange, application, services);
  if (recording !== undefined) await recording;
  return { status: 200, body };
}
