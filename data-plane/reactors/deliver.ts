/**
 * One delivery of a callback: one signed POST through the egress guard, no redirects, a bound on its time
 * and on what is read of the answer. Of address and answer nothing but the status reaches a log.
 */
import type { KeyObject } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { EgressError } from '../../shared/egress/egress-error.ts';
import { readableFailure } from '../../shared/sandbox/script-fetch-failure.ts';
import { webhookHeaders } from '../../shared/webhooks/sign-webhook.ts';
import { readRetryAfter } from './callback-schedule.ts';

export interface CallbackMessage {
  /** The same for all deliveries of a result. */
  readonly id: string;
  readonly url: string;
  readonly trace_id: string;
  /** JSON text. */
  readonly body: string;
  readonly secrets: readonly KeyObject[];
}

/** `refused`: never again (410). */
export type Delivery =
  | { readonly outcome: 'delivered' | 'refused' }
  | {
      readonly outcome: 'failed';
      readonly retry_after_ms: number | undefined;
      /** What the receiver answered. */
      readonly status?: number;
      /** Why it did not: a word of a closed set. */
      readonly reason?: string;
    };

/** From the name's resolution to the end of the answer. */
const DELIVERY_MS = 15_000;
/** An acknowledgement needs no body; what is within this keeps the connection from being cut. */
const ANSWER_BYTES_MAX = 64 * 1024;

/** Never rejects; `signal` ends it early. */
export async function deliver(
  dispatcher: Pick<Dispatcher, 'request'>,
  message: CallbackMessage,
  signal: AbortSignal,
  deliveryMs = DELIVERY_MS,
): Promise<Delivery> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(deliveryMs)]);
  try {
    const { statusCode, headers, body } = await send(dispatcher, message, ending);
    await body.dump({ limit: ANSWER_BYTES_MAX, signal: ending }).catch(() => undefined);
    if (statusCode >= 200 && statusCode < 300) return { outcome: 'delivered' };
    if (statusCode === 410) return { outcome: 'refused' };
    const retryAfter = headers['retry-after'];
    const asked = Array.isArray(retryAfter) ? retryAfter[0] : retryAfter;
    const retry_after_ms = readRetryAfter(asked, Date.now());
    return { outcome: 'failed', retry_after_ms, status: statusCode };
  } catch (error) {
    const reason = signal.aborted ? 'interrupted' : reasonOf(error, ending);
    return { outcome: 'failed', retry_after_ms: undefined, reason };
  }
}

/** Codes of ours, of the system and of TLS; messages would quote the receiver. */
function reasonOf(error: unknown, ending: AbortSignal): string {
  if (ending.aborted) return 'timeout';
  if (!(error instanceof EgressError)) return readableFailure(error).code ?? 'failed';
  const { code, detail } = error;
  return detail === undefined ? code : `${code} (${detail})`;
}

function send(
  dispatcher: Pick<Dispatcher, 'request'>,
  { id, url, trace_id, body, secrets }: CallbackMessage,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const { origin, pathname, search } = new URL(url);
  const timestamp_s = Math.floor(Date.now() / 1000);
  return dispatcher.request({
    ...{ origin, path: pathname + search, method: 'POST', signal, body },
    // A connection of its own: one that the receiver has just closed would cost a delivery.
    reset: true,
    headers: [
      ...['content-type', 'application/json', 'user-agent', 'sallyport'],
      ...['bt-trace-id', trace_id],
      ...webhookHeaders({ id, timestamp_s, body }, secrets),
    ],
  });
}
