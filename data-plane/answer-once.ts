/**
 * Requests with an idempotency key: one effect, and its answer again for a day (spec: Idempotency). What
 * was answered is shown to whoever could still be shown it now.
 */
import { SealBrokenError } from '../shared/crypto/envelope.ts';
import { ApiError } from '../shared/errors.ts';
import {
  type IdempotencyClaim,
  idempotencyScope,
  inProgress,
  readIdempotencyKey,
} from '../shared/idempotency/claim.ts';
import { type KeptAnswer, openAnswer } from '../shared/idempotency/kept-answer.ts';
import { creationAnswer } from '../shared/idempotency/named-token.ts';
import { deleteDeadRecord, type FoundRecord } from '../shared/idempotency/record-store.ts';
import { runOnce } from '../shared/idempotency/run-once.ts';
import type { CachedApplication } from './config-cache/application-cache.ts';
import type { Answer, Exchange } from './exchange.ts';
import { findReactor } from './reactors/find-reactor.ts';
import { requireHeld } from './routes/permit.ts';
import type { ReactingServices, Services } from './services.ts';
import type { RouteEntry } from './token-routes.ts';
import { requireAsOpen } from './used-containers.ts';

/** The route's answer, or the one that was kept under the request's key. */
export function answerOnce(
  exchange: Exchange,
  application: CachedApplication,
  entry: RouteEntry,
  services: Services,
): Promise<Answer> {
  return exchange.head.idempotencyKey === undefined
    ? entry.route(exchange, application, services)
    : answerOnKey(exchange, application, entry, services);
}

async function answerOnKey(
  exchange: Exchange,
  application: CachedApplication,
  entry: RouteEntry,
  services: Services,
): Promise<Answer> {
  const { operation, route } = entry;
  const run = (): Promise<Answer> => route(exchange, application, services);
  await claimKey(exchange, application, operation, services);
  if (exchange.idempotency === undefined) return run();
  const look = () => keptAnswer(exchange, application, operation, services);
  const { countNotDone: notDone } = services;
  return runOnce({ look, run, looksFirst: entry.looksFirst, notDone });
}

/** Throws 400 for what is no key. */
async function claimKey(
  exchange: Exchange,
  { tenant_id, application_id }: CachedApplication,
  operation: RouteEntry['operation'],
  { dataKeys }: Services,
): Promise<void> {
  const key = readIdempotencyKey(operation, exchange.head.idempotencyKey);
  if (key === undefined || exchange.idempotency !== undefined) return;
  const keys = dataKeys.cached(tenant_id) ?? (await dataKeys.forTenant(tenant_id));
  // In another transaction the same key is another effect: the first may have been rolled back.
  const { transactionId } = operation.transactional === true ? exchange.head : {};
  const params = [...Object.values(exchange.params), transactionId?.toLowerCase()].filter(
    (value) => value !== undefined,
  );
  const scope = idempotencyScope(keys.search, { application_id, operation, params, key });
  exchange.idempotency = { tenant_id, scope, keys };
}

/**
 * What was answered under the key; `undefined` when nothing that counts was. Throws 409 while somebody
 * is at work on it, 403 and 404 when the caller could not be shown it any more.
 */
async function keptAnswer(
  exchange: Exchange,
  application: CachedApplication,
  { permission }: RouteEntry['operation'],
  services: Services,
): Promise<Answer | undefined> {
  const { idempotency: claim } = exchange;
  if (claim === undefined) return undefined;
  const found = await services.records.submit(claim);
  exchange.confirm(application, found);
  const { record } = found;
  if (record === undefined) return undefined;
  if (record.dead) {
    await deleteDeadRecord(services.pool, claim);
    return undefined;
  }
  if (record.is_over) throw answerOver();
  if (record.sealed === null && record.named === undefined) throw inProgress();
  if (permission !== 'any_key' && permission !== 'no_key') requireHeld(application, permission);
  const kept = await answerIn(record, claim, application, services);
  await requireStill(kept, application, services);
  return answerOf(kept);
}

/** What the record holds, or what was answered when the token was created that it names. */
async function answerIn(
  { sealed, named, effect_at_ms, due_at_ms }: FoundRecord,
  claim: IdempotencyClaim,
  { tenant_id, application_id }: CachedApplication,
  { dataKeys, opener }: Services,
): Promise<KeptAnswer> {
  if (sealed !== null) return openAnswer(dataKeys, claim, sealed, effect_at_ms, due_at_ms);
  const token = named?.token;
  // It is written down before its token goes, so somebody has changed the rows.
  if (named === undefined || token?.created_by !== application_id) throw new SealBrokenError();
  const payload = await opener.open(tenant_id, token);
  return creationAnswer(tenant_id, token, payload, named.shows_mask);
}

/** The 409 of a request that was carried out, when what it was answered must not be kept any more. */
function answerOver(): ApiError {
  const detail =
    'A request with this idempotency key was carried out; its answer is not kept any more, since a ' +
    'cvc was opened for it';
  return new ApiError('conflict', detail);
}

async function requireStill(
  { rights, reactor_id }: KeptAnswer,
  application: CachedApplication,
  services: Services,
): Promise<void> {
  for (const right of rights ?? []) requireAsOpen(application, right);
  if (reactor_id === undefined) return;
  const { reactions } = services;
  if (reactions === undefined) throw new ApiError('unavailable', 'No reactors are run here');
  const reacting: ReactingServices = { ...services, reactions };
  await findReactor(reactor_id, application, reacting);
}

function answerOf({ status, headers, body }: KeptAnswer): Answer {
  return {
    status,
    ...(headers === undefined ? {} : { headers }),
    ...(body === undefined ? {} : { body }),
  };
}
