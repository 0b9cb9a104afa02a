/**
 * A decided request gets its place at the destination and is sent. Where that takes time, because others are
 * before it or because there is no connection yet, the right to it is asked for again: a key that is revoked, a
 * proxy or a token that is deleted, an access rule that is taken away hold from their acknowledgement on.
 */
import { ApiError } from '../../shared/errors.ts';
import type { Answer } from '../exchange.ts';
import type { ProxyingServices } from '../services.ts';
import { decideCurrently, type ProxyCaller } from './caller.ts';
import { ANSWER_WITHIN_MS, ExchangeEnded } from './exchange.ts';
import type { Place } from './places.ts';
import type { Prepared, RequestPreparation } from './prepare.ts';
import { destinationError } from './proxy-error.ts';
import { RequestBody } from './request-body.ts';

/** What a decision is good for without being asked again, in milliseconds. */
const LEAVE_WITHIN_MS = 500;

export interface Decision {
  readonly caller: ProxyCaller;
  readonly decided: Prepared;
}

/** A request that may leave now. */
export interface Departure {
  readonly caller: ProxyCaller;
  readonly decided: Exclude<Prepared, { custom: Answer }>;
  readonly place: Place;
  /** On the monotonic clock; `undefined`: it was asked for again just now. */
  readonly leaveBy: number | undefined;
}

type Custom = Extract<Prepared, { custom: Answer }>;

export interface Turn {
  readonly preparation: RequestPreparation;
  readonly services: ProxyingServices;
  readonly traceId: string;
  /** Aborted when nobody wants the answer any more; asked for when one must wait. */
  gone(): AbortSignal;
}

/**
 * Calls `send` when it is the request's turn, and once more when it was too late to leave; `send` gives the place
 * back. Throws what deciding throws, 408 when nobody leaves before the destination's time is over, and 503 when
 * the proxy leads elsewhere by now.
 */
export function sendInTurn<T>(
  { caller, decided }: { caller: ProxyCaller; decided: Departure['decided'] },
  turn: Turn,
  send: (departure: Departure) => Promise<T>,
): Promise<T | Custom> {
  requireUnmoved(caller);
  const place = placesOf(caller, turn).enter(caller.proxy.destination.origin);
  if (place === undefined) return sendLater({ caller, decided }, turn, send);
  // A body that streams holds nothing of the vault, and cannot be sent twice.
  const mayBeLate = decided.body instanceof RequestBody;
  const leaveBy = mayBeLate ? undefined : performance.now() + LEAVE_WITHIN_MS;
  return sendFrom({ caller, decided, place, leaveBy }, send).catch((error: unknown) => {
    if (!(error instanceof ExchangeEnded && error.reason === 'late')) throw error;
    return sendLater({ caller, decided }, turn, send);
  });
}

async function sendLater<T>(
  before: Decision,
  turn: Turn,
  send: (departure: Departure) => Promise<T>,
): Promise<T | Custom> {
  const { origin } = before.caller.proxy.destination;
  const place = await waitForPlace(origin, before.caller, turn);
  let departure: Departure;
  try {
    const { caller, decided } = await decideAgain(before, turn);
    requireUnmoved(caller);
    if (caller.proxy.destination.origin !== origin) throw moved();
    if ('custom' in decided) {
      place.leave();
      return decided;
    }
    departure = { caller, decided, place, leaveBy: undefined };
  } catch (error) {
    place.leave();
    throw error;
  }
  return sendFrom(departure, send);
}

function sendFrom<T>(departure: Departure, send: (departure: Departure) => Promise<T>): Promise<T> {
  try {
    return send(departure);
  } catch (error) {
    // Nothing was begun that could end.
    departure.place.leave();
    throw error;
  }
}

async function waitForPlace(origin: string, caller: ProxyCaller, turn: Turn): Promise<Place> {
  const gone = turn.gone();
  const signal = AbortSignal.any([gone, AbortSignal.timeout(ANSWER_WITHIN_MS)]);
  try {
    return await placesOf(caller, turn).wait(origin, signal);
  } catch {
    throw destinationError(new ExchangeEnded(gone.aborted ? 'caller_gone' : 'timeout'));
  }
}

/** A transform does not run twice, and a stream does not come twice: for them only the right is asked for again. */
async function decideAgain(
  before: Decision,
  { preparation, services, traceId }: Turn,
): Promise<Decision> {
  const { caller, decided } = before;
  const isUsed = 'body' in decided && decided.body instanceof RequestBody;
  if (isUsed || caller.proxy.request_transform !== null) {
    await caller.current();
    return before;
  }
  return decideCurrently(
    caller.unconfirmed(),
    (current) => preparation.decide(current),
    services,
    traceId,
  );
}

function placesOf({ proxy }: ProxyCaller, { services }: Turn) {
  return services.proxying.pools.places(proxy.tenant_id);
}

function requireUnmoved({ isMoved }: ProxyCaller): void {
  if (isMoved) throw moved();
}

function moved(): ApiError {
  return new ApiError('unavailable', 'The destination of the proxy was changed; try again', {
    headers: { 'retry-after': '1' },
  });
}
