/** When a callback that was not acknowledged is sent again (facts 9.5). */

/** The first and ten more. */
export const DELIVERIES_MAX = 11;
/** Doubled ten times: 2 h 33 min in all. */
const FIRST_RETRY_MS = 9_000;
/** Of each wait, either way: what failed together is not sent again together. */
const JITTER = 0.1;
/** A receiver may ask for more time than that, and does not get it: results are kept for a day. */
export const RETRY_AFTER_MS_MAX = 3_600_000;

/** Milliseconds until the next delivery, after the one of number `attempt`, which counts from 1. */
export function retryDelayMs(
  attempt: number,
  retry_after_ms: number | undefined,
  first_ms: number = FIRST_RETRY_MS,
): number {
  const wait = first_ms * 2 ** (attempt - 1) * (1 + JITTER * (2 * Math.random() - 1));
  return Math.max(wait, Math.min(retry_after_ms ?? 0, RETRY_AFTER_MS_MAX));
}

/** Milliseconds that a `Retry-After` asks for (RFC 9110 section 10.2.3); `undefined` when it makes no sense. */
export function readRetryAfter(value: string | undefined, now_ms: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1_000;
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now_ms);
}
