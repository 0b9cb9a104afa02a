/**
 * A decided request gets its place at the destination and is sent. Where that takes time it is asked again whether it
 * may still be sent: when it is its turn, if others were before it, and each half second while there is no connection
 * yet. What was revoked or deleted meanwhile ends it.
 */
import { ApiError } from '../../shared/errors.ts';
import { retryRead } from '../../shared/postgres/database-error.ts';
import { missingTokens } from '../../shared/tokens/detokenize.ts';
import { findMissing } from '../../shared/tokens/find-missing.ts';
import type { Answer } from '../exchange.ts';
import type { ProxyingServices } from '../services.ts';
import type { ProxyCaller } from './caller.ts';
import {
  ANSWER_WITHIN_MS,
  type Exchange,
  ExchangeEnded,
  type ExchangeWatcher,
} from './exchange.ts';
import { type Place, type Places, TooManyWaitError } from './places.ts';
import type { Prepared } from './prepare.ts';
import { destinationError, MovedError } from './proxy-error.ts';
import { RequestBody } from './request-body.ts';

/** What a decision is good for without being asked again. */
const ASK_EACH_MS = 500;

export type Sendable = Exclude<Prepared, { custom: Answer }>;

export interface Decision {
  readonly caller: ProxyCaller;
  readonly decided: Sendable;
  readonly traceId: string;
}

/** A request to be sent, and what its sender makes of that. */
export interface Sending<T> {
  readonly decision: Decision;
  readonly services: ProxyingServices;
  /** Aborted when nobody wants the answer any more; asked for when one must wait. */
  gone(): AbortSignal;
  open(watcher: ExchangeWatcher): Exchange;
  take(exchange: Exchange): Promise<T>;
}

/**
 * Opens the exchange when there is a place for it. Settles with what was taken of it. Throws 408 when no place gets
 * free while the destination has time to answer, 429 when too many wait for one, what asking for a right again throws,
 * and 503 when the proxy leads elsewhere by now.
 */
export function sendInTurn<T>(sending: Sending<T>): Promise<T> {
  const { proxy, isMoved } = sending.decision.caller;
  const places = sending.services.proxying.pools.places(proxy.tenant_id);
  const place = isMoved ? undefined : places.enter(proxy.destination.origin);
  return place === undefined ? waitAndSend(sending, places) : send(sending, place);
}

async function waitAndSend<T>(sending: Sending<T>, places: Places): Promise<T> {
  const { decision, services } = sending;
  let place: Place | undefined;
  try {
    const { proxy, isMoved } = decision.caller;
    if (isMoved) throw new MovedError();
    const gone = sending.gone();
    place = await waitForPlace(places, proxy.destination.origin, gone);
    await mayStillLeave(decision, services);
    if (gone.aborted) throw new ExchangeEnded('caller_gone');
  } catch (error) {
    place?.leave();
    dropBody(decision);
    throw error;
  }
  return send(sending, place);
}

/** What is left of a stream is read to nowhere, so that the answer is not lost with the connection. */
function dropBody({ decided: { body } }: Decision): void {
  if (body instanceof RequestBody) body.destroy();
}

async function waitForPlace(places: Places, origin: string, gone: AbortSignal): Promise<Place> {
  try {
    return await places.wait(
      origin,
      AbortSignal.any([gone, AbortSignal.timeout(ANSWER_WITHIN_MS)]),
    );
  } catch (error) {
    if (error instanceof TooManyWaitError) throw tooManyWait();
    throw destinationError(new ExchangeEnded(gone.aborted ? 'caller_gone' : 'timeout'));
  }
}

function tooManyWait(): ApiError {
  const detail = 'Too many requests wait for destinations that are busy; try again';
  return new ApiError('too_many_requests', detail, { headers: { 'retry-after': '1' } });
}

function send<T>(sending: Sending<T>, place: Place): Promise<T> {
  const departure = new Departure(place, sending);
  let exchange: Exchange;
  try {
    exchange = sending.open(departure);
  } catch (error) {
    departure.onOver();
    throw error;
  }
  departure.watch(exchange);
  return sending.take(exchange);
}

/** Holds the place as long as the exchange needs it, and asks until the request begins to be sent. */
class Departure implements ExchangeWatcher {
  readonly #place: Place;
  readonly #sending: Pick<Sending<unknown>, 'decision' | 'services'>;
  #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;

  constructor(place: Place, sending: Pick<Sending<unknown>, 'decision' | 'services'>) {
    this.#place = place;
    this.#sending = sending;
  }

  onBegin(): void {
    this.#hasBegun = true;
    clearTimeout(this.#timer);
  }

  onOver(): void {
    this.onBegin();
    this.#place.leave();
  }

  watch(exchange: Exchange): void {
    if (this.#hasBegun) return;
    const { decision, services } = this.#sending;
    this.#timer = setTimeout(() => {
      mayStillLeave(decision, services).then(
        () => this.watch(exchange),
        (cause: unknown) => {
          if (this.#hasBegun) return;
          exchange.abort(new ExchangeEnded('revoked', { cause }));
          dropBody(decision);
        },
      );
    }, ASK_EACH_MS);
  }
}

/** Throws when the key, its rights, the proxy or one of the tokens is gone by now, and 503 when the proxy was moved. */
async function mayStillLeave(
  { caller, decided: { tokenIds }, traceId }: Decision,
  { pool }: ProxyingServices,
): Promise<void> {
  try {
    await caller.current();
  } catch (error) {
    await caller.recordDenial(error, traceId);
    throw error;
  }
  if (caller.isMoved) throw new MovedError();
  if (tokenIds.length === 0) return;
  const missing = await retryRead(() => findMissing(pool, caller.proxy.tenant_id, tokenIds));
  if (missing.length > 0) throw missingTokens(missing);
}
