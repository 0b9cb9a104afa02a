/**
 * Accepts a reaction to be run later: whatever can be known to be wrong is refused now, and what is stored
 * holds expressions, never what they stand for.
 */
import { randomUUID } from 'node:crypto';
import { ApiError } from '../../shared/errors.ts';
import { announceJobs } from '../../shared/jobs/job-store.ts';
import { checkDetokenization, type PermittedToken } from '../../shared/tokens/detokenize.ts';
import type { SealedRow } from '../../shared/tokens/token-row.ts';
import type { CachedApplication } from '../config-cache/application-cache.ts';
import type { CachedReactor } from '../config-cache/reactor-cache.ts';
import type { Answer, Exchange } from '../exchange.ts';
import type { ReactingServices } from '../services.ts';
import { inKeyedTransaction } from '../write-transaction.ts';
import { checkArguments } from './arguments.ts';
import { type QueuedReaction, sealJob } from './job-content.ts';
import { acceptReactions } from './reaction-queue.ts';

export interface AsyncCall extends Pick<QueuedReaction, 'timeout_ms' | 'callback_url'> {
  readonly args: unknown;
}

/** Who calls what. */
export interface CallContext {
  readonly exchange: Exchange;
  readonly application: CachedApplication;
  readonly reactor: CachedReactor;
}

/**
 * The answer, made of the id of the request, once its job is stored. Throws 400 and 403 as the run would,
 * as far as that can be known without opening a token, and 429 when too many of the tenant wait already;
 * the right to each token is asked for again when it runs.
 */
export async function acceptReaction(
  call: AsyncCall,
  { exchange, application, reactor }: CallContext,
  services: ReactingServices,
  answerOf: (id: string) => Answer,
): Promise<Answer> {
  const { tenant_id, application_id, config_version, keyHash } = application;
  // A script would start runs that outlive it, and those would start others.
  if (exchange.callingRun !== undefined || keyHash === undefined) {
    throw new ApiError('bad_request', 'A reactor cannot be called asynchronously by a script');
  }
  await services.reactions.queueRoom.require(tenant_id);
  checkArguments(reactor.request_parameters ?? [], call.args);
  const tokens = await checkDetokenization(call.args, 'args', {
    ...{ tenant_id, access: application.access, permission: 'token:use' },
    readers: services.readers,
    confirm: (reading) => exchange.confirm(application, reading),
  });
  const keys =
    services.dataKeys.cached(tenant_id) ?? (await services.dataKeys.forTenant(tenant_id));
  const id = randomUUID();
  const { reactor_id, code, code_version, request_parameters } = reactor;
  const sealed = sealJob(
    keys,
    { tenant_id, id, kind: 'react' },
    {
      ...{ reactor_id, code, code_version, request_parameters, application_id },
      ...{ key_hash: keyHash.toString('base64'), trace_id: exchange.head.traceId },
      ...{ ...call, cvc_token_ids: idsWithCvc(tokens) },
    },
  );
  const accepted = { tenant_id, config_version, id, sealed };
  const answer = answerOf(id);
  if (exchange.idempotency === undefined) {
    exchange.confirm(application, await services.reactions.queue.submit(accepted));
    return answer;
  }
  await inKeyedTransaction(exchange, services, async (client) => {
    const [reading] = await acceptReactions(client, [accepted]);
    await announceJobs(client);
    if (reading !== undefined) exchange.confirm(application, reading);
    return { answer };
  });
  return answer;
}

/** The tokens whose cvc the run would see: it may be gone by then, and must not be missing silently. */
function idsWithCvc(tokens: readonly PermittedToken<SealedRow>[]): string[] {
  return tokens.flatMap(({ row: { id, cvc_sealed }, transform }) =>
    cvc_sealed !== null && transform === 'reveal' ? [id] : [],
  );
}
