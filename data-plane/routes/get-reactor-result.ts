/**
 * `GET /reactors/{id}/results/{requestId}`: what an asynchronous run answered, as it would have been
 * answered at once. Only to the application that asked for it, and while it could still ask.
 */
import { ApiError } from '../../shared/errors.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { findReactor, isUuid, requireReactions } from '../reactors/find-reactor.ts';
import { requireResultRight } from '../reactors/result-right.ts';
import { findResult, RESULT_HOURS } from '../reactors/result-store.ts';
import type { Services } from '../services.ts';
import { requireHeld } from './permit.ts';

/** One text for all, since an unknown request cannot be told from one whose run has not ended. */
const NO_RESULT =
  'No result yet, or not any more: it is there from the end of the run for ' +
  `${RESULT_HOURS} hours, for the application that asked`;

export async function getReactorResult(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:use');
  requireReactions(services);
  const { tenant_id, application_id } = application;
  const { reactor_id } = await findReactor(exchange.params.id ?? '', application, services);
  const id = exchange.params.requestId?.toLowerCase() ?? '';
  const { pool, dataKeys } = services;
  const result = isUuid(id) ? await findResult(pool, dataKeys, tenant_id, id) : undefined;
  if (result?.reactor_id !== reactor_id || result.application_id !== application_id) {
    throw new ApiError('not_found', NO_RESULT);
  }
  await requireResultRight(result, exchange, application, services);
  return result.answer;
}
