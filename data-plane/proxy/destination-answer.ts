/**
 * A destination's answer as it is taken over: its head waited for and measured, the tripwire passed, its
 * body on its way, or whole and decoded where a transform, a script or a masking tripwire must read it.
 */
import type { ProxyingServices } from '../services.ts';
import type { BroughtOut } from './brought-out.ts';
import type { ProxyCaller } from './caller.ts';
import { contentCoding } from './content-coding.ts';
import type { DestinationAnswer, Exchange } from './exchange.ts';
import { withoutHeader } from './headers.ts';
import { destinationError } from './proxy-error.ts';
import { createTripwire, type Tripwire } from './watched-answer.ts';
import { readWholeAnswer } from './whole-answer.ts';

/** An answer all of which is here; its headers name no coding. */
export interface WholeAnswer extends Pick<DestinationAnswer, 'status' | 'headers'> {
  readonly body: Buffer;
}

/** What was sent, as far as its answer is judged by it. */
export interface Sent {
  readonly method: string;
  readonly broughtOut: BroughtOut;
  readonly traceId: string;
}

/** Facts 2.3: nothing but success is transformed, and there must be something to transform. */
export function isTransformed({ status }: { status: number }, method: string): boolean {
  return status >= 200 && status <= 299 && method !== 'HEAD';
}

/**
 * Throws what a caller may know of an exchange that failed, and 502 for an answer that must be read and
 * cannot be. A body that is not whole must be taken or aborted. `isNeeded`: whether it must be whole;
 * it is, too, where values are to be masked in what is compressed.
 */
export function receive(
  exchange: Exchange,
  sent: Sent,
  { proxy }: ProxyCaller,
  services: ProxyingServices,
  isNeeded: (answer: DestinationAnswer) => boolean,
): Promise<DestinationAnswer | WholeAnswer> {
  return headOf<DestinationAnswer | WholeAnswer>(exchange, services.proxying.metrics, (answer) => {
    const tripwire = tripwireFor(sent, proxy, services);
    if (isNeeded(answer) || mustDecode(answer, sent, tripwire)) return readWhole(answer, tripwire);
    if (tripwire === undefined) return answer;
    const body = hasBody(answer, sent) ? tripwire.stream(answer) : answer.body;
    return { status: answer.status, headers: tripwire.headers(answer.headers), body };
  });
}

/** The same for an answer that is needed whole. */
export function receiveWhole(
  exchange: Exchange,
  sent: Sent,
  { proxy }: ProxyCaller,
  services: ProxyingServices,
): Promise<WholeAnswer> {
  return headOf(exchange, services.proxying.metrics, (answer) =>
    readWhole(answer, tripwireFor(sent, proxy, services)),
  );
}

export function isWhole(answer: DestinationAnswer | WholeAnswer): answer is WholeAnswer {
  return Buffer.isBuffer(answer.body);
}

async function readWhole(
  answer: DestinationAnswer,
  tripwire: Tripwire | undefined,
): Promise<WholeAnswer> {
  const { status } = answer;
  const bytes = await readWholeAnswer(answer);
  // It names the coding of what came, not of what goes on.
  const headers = withoutHeader(answer.headers, 'content-encoding');
  if (tripwire === undefined) return { status, headers, body: bytes };
  return { status, headers: tripwire.headers(headers), body: await tripwire.bytes(bytes) };
}

/** What is compressed cannot be masked, and was not asked for (prepare.ts). */
function mustDecode(
  answer: DestinationAnswer,
  sent: Sent,
  tripwire: Tripwire | undefined,
): boolean {
  if (tripwire === undefined || !tripwire.masks || !hasBody(answer, sent)) return false;
  return contentCoding(answer.headers) !== 'identity';
}

/** RFC 9112 section 6.3. */
function hasBody({ status }: DestinationAnswer, { method }: Sent): boolean {
  return method !== 'HEAD' && status !== 204 && status !== 304;
}

function tripwireFor(
  { broughtOut, traceId }: Sent,
  proxy: ProxyCaller['proxy'],
  { proxying: { metrics, log } }: ProxyingServices,
): Tripwire | undefined {
  return createTripwire(broughtOut, proxy.leak_tripwire, {
    found(place, count) {
      metrics.leaks.inc({ place }, count);
      log.leaked(proxy, traceId, place, count);
    },
    unwatched(reason) {
      metrics.unwatched.inc({ reason });
      log.unwatched(proxy, traceId, reason);
    },
  });
}

/** What `take` makes of the answer when its head is here; measured until then. */
function headOf<T>(
  { answer }: Exchange,
  { destinationDuration }: ProxyingServices['proxying']['metrics'],
  take: (head: DestinationAnswer) => T | Promise<T>,
): Promise<T> {
  const startedAt = performance.now();
  const measure = (): void => destinationDuration.observe((performance.now() - startedAt) / 1000);
  return answer.then(
    (head) => {
      measure();
      return take(head);
    },
    (error: unknown) => {
      measure();
      throw destinationError(error);
    },
  );
}
