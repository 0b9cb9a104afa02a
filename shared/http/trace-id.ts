/**
 * The id under which one request is found again in answers and logs (`bt-trace-id`).
 * A caller's own id is repeated only when it is harmless in a header and in a log line.
 */
import { randomUUID } from 'node:crypto';

/** Long enough for a UUID or a W3C traceparent (55), too short to smuggle a payload into logs. */
const TRACE_ID_LENGTH_MAX = 64;

/** Letters, digits and the punctuation of common id formats; no quotes, brackets or spaces. */
const SAFE = new Uint8Array(128);
for (const character of '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:/+=|@') {
  SAFE[character.charCodeAt(0)] = 1;
}

/** A fresh trace id, a UUID v4. */
export function newTraceId(): string {
  return randomUUID();
}

/**
 * The caller's `BT-TRACE-ID` when it is 1 to 64 safe characters, else a new one
 * (facts 12: accepted on requests, generated otherwise).
 */
export function acceptTraceId(value: string | undefined): string {
  if (value === undefined || value.length === 0 || value.length > TRACE_ID_LENGTH_MAX) {
    return newTraceId();
  }
  for (let index = 0; index < value.length; index++) {
    if (SAFE[value.charCodeAt(index)] !== 1) return newTraceId();
  }
  return value;
}
