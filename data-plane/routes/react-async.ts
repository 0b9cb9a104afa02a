/** `POST /reactors/{id}/react-async`: the id under which the result can be asked for (facts 9.5). */
import { reactAsync as operation } from '../../shared/api/reactors.ts';
import { compileValidator } from '../../shared/api/validate.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import { acceptReaction } from '../reactors/accept-reaction.ts';
import { readAsyncTimeout } from '../reactors/async-members.ts';
import { findReactor, requireReactions } from '../reactors/find-reactor.ts';
import type { Services } from '../services.ts';
import { requireHeld } from './permit.ts';
import { readReactBody } from './react.ts';

const validate = compileValidator(operation.body);

export async function reactAsync(
  exchange: Exchange,
  application: CachedApplication,
  services: Services,
): Promise<Answer> {
  requireHeld(application, 'token:use');
  requireReactions(services);
  const reactor = await findReactor(exchange.params.id ?? '', application, services);
  const body = validate(await readReactBody(exchange));
  const call = { args: body.args, callback_url: null, timeout_ms: readAsyncTimeout(body) };
  return acceptReaction(call, { exchange, application, reactor }, services, (id) => ({
    status: 202,
    body: JSON.stringify({ asyncReactorRequestId: id }),
  }));
}
