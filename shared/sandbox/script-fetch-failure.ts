/**
 * Why a fetch of a script failed, for the script to read. A closed list: no message ever holds a host, an
 * address, or text of the destination or of the request.
 */
import { EgressError, type EgressReason } from '../egress/egress-error.ts';
import { ScriptCallError } from './script-services.ts';

/** Message and code; Node's own code where it has one, since customers' code branches on it. */
const FAILURES = {
  not_a_request: ['The request could not be read', 'ERR_INVALID_ARG_VALUE'],
  url: ['The URL must be absolute, https, and without user name and password', 'ERR_INVALID_URL'],
  method: ['The method is not allowed', 'ERR_INVALID_HTTP_TOKEN'],
  header_name: ['The name of a header is not valid', 'ERR_INVALID_HTTP_TOKEN'],
  header_value: ['The value of a header has characters that are not allowed', 'ERR_INVALID_CHAR'],
  headers_too_large: ['The headers of the request are too large', 'ERR_REQUEST_TOO_LARGE'],
  body_too_large: ['The body of the request is larger than 5 MiB', 'ERR_REQUEST_TOO_LARGE'],
  body_not_allowed: ['A request with this method cannot have a body', 'ERR_INVALID_ARG_VALUE'],
  headers_timeout: ['The destination did not begin to answer in time', 'ETIMEDOUT'],
  timeout: ['The destination did not answer in time', 'ETIMEDOUT'],
  response_headers_too_large: ['The headers of the response are too large', 'HPE_HEADER_OVERFLOW'],
  response_too_large: ['The response is larger than 10 MiB', 'ERR_RESPONSE_TOO_LARGE'],
  response_not_decoded: [
    'The body of the response does not match its Content-Encoding',
    'ERR_CONTENT_DECODING_FAILED',
  ],
  response_not_http: ['The destination did not answer with valid HTTP', 'HPE_INVALID_CONSTANT'],
  connection_lost: ['The connection ended before the response was complete', 'ECONNRESET'],
  redirect_refused: ['The destination answered with a redirect', 'ERR_REDIRECT'],
  redirect_invalid: ['The redirect does not lead to a valid https URL', 'ERR_REDIRECT'],
  redirect_downgrade: ['A redirect from https to http is not followed', 'ERR_REDIRECT'],
  redirect_with_body: [
    'A redirect that sends the body of the request to another origin is not followed',
    'ERR_REDIRECT',
  ],
  too_many_redirects: ['More than 5 redirects are not followed', 'ERR_FR_TOO_MANY_REDIRECTS'],
  too_many_requests: ['Too many requests of the tenant are under way', 'EAGAIN'],
  too_much_data: ['The requests and responses under way hold too much data', 'EAGAIN'],
  closed: ['The request was ended because the service stops', 'ECONNABORTED'],
  failed: ['The request failed', 'ERR_REQUEST_FAILED'],
} as const satisfies Record<string, readonly [string, string]>;

export type FetchFailure = keyof typeof FAILURES;

/** Codes of the guard's reasons; its messages are fit for scripts as they are. */
const EGRESS_CODES: Record<EgressReason, string> = {
  host_refused: 'ERR_DESTINATION_REFUSED',
  address_refused: 'ERR_DESTINATION_REFUSED',
  port_refused: 'ERR_DESTINATION_REFUSED',
  plain_http_refused: 'ERR_DESTINATION_REFUSED',
  address_changed: 'ERR_DESTINATION_REFUSED',
  name_not_resolved: 'ENOTFOUND',
  name_chain_too_long: 'ENOTFOUND',
  name_timeout: 'ETIMEOUT',
  connect_failed: 'ECONNREFUSED',
  connect_timeout: 'ETIMEDOUT',
  tls_failed: 'ERR_TLS_FAILED',
};

/** undici's errors by their code. */
const TRANSPORT_FAILURES: Record<string, FetchFailure> = {
  UND_ERR_HEADERS_TIMEOUT: 'headers_timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_OVERFLOW: 'response_headers_too_large',
  HPE_HEADER_OVERFLOW: 'response_headers_too_large',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'response_too_large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'connection_lost',
  UND_ERR_SOCKET: 'connection_lost',
  UND_ERR_MAX_ORIGINS_REACHED: 'too_many_requests',
  UND_ERR_DESTROYED: 'closed',
  UND_ERR_CLOSED: 'closed',
  ECONNRESET: 'connection_lost',
  EPIPE: 'connection_lost',
};

/** To be thrown for what this side decides. */
export function fetchError(failure: FetchFailure): ScriptCallError {
  const [message, code] = FAILURES[failure];
  return new ScriptCallError(message, code);
}

/** What a script may know of any error on the way to a response. */
export function readableFailure(error: unknown): ScriptCallError {
  if (error instanceof ScriptCallError) return error;
  if (error instanceof EgressError) {
    return new ScriptCallError(error.message, EGRESS_CODES[error.code]);
  }
  if (!(error instanceof Error)) return fetchError('failed');
  const code: unknown = Reflect.get(error, 'code');
  if (typeof code === 'string' && Object.hasOwn(TRANSPORT_FAILURES, code)) {
    return fetchError(TRANSPORT_FAILURES[code] ?? 'failed');
  }
  // The parser's errors mostly have no code.
  return fetchError(error.name === 'HTTPParserError' ? 'response_not_http' : 'failed');
}
