/**
 * Cross-origin answers: any origin, since the only credential is a header that no browser sends by
 * itself. Credentials mode must never be allowed here. Flat name, value lists, as `writeHead` takes.
 */
import { ALLOW_HEADER } from './methods.ts';

/** Chrome's upper bound, 2 h: a preflight per call would double the requests of a browser. */
const PREFLIGHT_SECONDS = '7200';

/** The names are spelled out for browsers that do not know `*`, which covers a proxied request's own. */
const REQUEST_HEADERS = [
  'accept',
  'content-type',
  'bt-api-key',
  'bt-trace-id',
  'bt-idempotency-key',
  'bt-transaction-id',
  'bt-proxy-key',
  'bt-proxy-url',
  'bt-proxy-keep-alive',
  'bt-proxy-connection',
  'bt-client-user-agent',
  '*',
].join(', ');

/** For every answer (design section 12, CORS). */
export const CORS_HEADERS: readonly string[] = Object.freeze([
  'access-control-allow-origin',
  '*',
  'access-control-expose-headers',
  'bt-trace-id, bt-proxy-destination-status',
]);

/** For the 204 to `OPTIONS`, on any path and without a key: a preflight cannot carry one. */
export const PREFLIGHT_HEADERS: readonly string[] = Object.freeze([
  ...CORS_HEADERS,
  'access-control-allow-methods',
  ALLOW_HEADER,
  'access-control-allow-headers',
  REQUEST_HEADERS,
  'access-control-max-age',
  PREFLIGHT_SECONDS,
]);
