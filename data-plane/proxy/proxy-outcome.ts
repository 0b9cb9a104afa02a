/** How proxied requests end; labels of their metric. */
export const PROXY_OUTCOMES = [
  'forwarded',
  'custom_response',
  'refused',
  'transform_failed',
  'destination_failed',
  'destination_timeout',
  'destination_reset',
  'caller_gone',
  'failed',
] as const;

export type ProxyOutcome = (typeof PROXY_OUTCOMES)[number];
