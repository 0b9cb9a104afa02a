/**
 * A script's call of a proxy as the request that it would have been. Pure. The head passes the strict
 * check of the listener; what a connection or the gateway itself says in a head, no script may say.
 */
import { ApiError } from '../../shared/errors.ts';
import { decompress, readCoding } from '../../shared/http/decompress.ts';
import { type AcceptedRequest, checkRequest } from '../../shared/http/strict-request.ts';
import type { ScriptProxyCall } from '../reactors/script-call-text.ts';
import type { ScriptCaller } from '../reactors/script-exchange.ts';
import type { IncomingRequest } from './prepare.ts';
import { isProxyPath, PROXY_PATH, type ProxyRequest, readProxyRequest } from './read-request.ts';

export interface ScriptProxyRequest {
  readonly incoming: IncomingRequest;
  readonly asked: ProxyRequest;
}

const BODY_BYTES_MAX = 5 * 1024 * 1024;
/** Names and values together: as much as the listener's parser takes. */
const HEADERS_LENGTH_MAX = 16 * 1024;
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Of the headers that are ours only these: whose rights a call has is not the script's to say. */
const OURS_TAKEN = new Set(['bt-proxy-key', 'bt-proxy-url']);
/** Said here: common clients set them, and they would be wrong. */
const IGNORED = new Set(['host', 'content-length', 'bt-trace-id']);

/** Throws 400, 404, 413, 414 or 431 as the listener would. */
export function readScriptRequest(
  { method, path, query, headers, body }: ScriptProxyCall,
  caller: ScriptCaller,
): ScriptProxyRequest {
  if (body.length > BODY_BYTES_MAX) {
    throw new ApiError('payload_too_large', `The body is over ${BODY_BYTES_MAX} bytes`);
  }
  const url = PROXY_PATH + path + (query === '' ? '' : `?${query}`);
  const rawHeaders = headersOf(headers, caller.traceId, body.length);
  const head = acceptedHead(method, url, rawHeaders);
  const readBytes: IncomingRequest['readBytes'] = async () => {
    const coding = readCoding(head.contentEncoding);
    const isPlain = coding === 'identity' || body.length === 0;
    const decoded = isPlain ? body : await decompress(body, coding, BODY_BYTES_MAX);
    return { wire: body, decoded };
  };
  return {
    incoming: { head, rawHeaders, callingRun: caller, readBytes, passBody: () => body },
    asked: readProxyRequest(url, rawHeaders),
  };
}

function acceptedHead(method: string, url: string, rawHeaders: readonly string[]): AcceptedRequest {
  const head = checkRequest(method, url, '1.1', rawHeaders);
  if (!head.ok) throw new ApiError(head.code, head.detail);
  if (!METHODS.has(method)) throw new ApiError('method_not_allowed', 'This method is not served');
  if (!isProxyPath(head.path)) throw new ApiError('bad_request', 'The path must begin with a /');
  return head;
}

function headersOf(given: readonly string[], traceId: string, bodyLength: number): string[] {
  const raw = ['Host', 'localhost', 'BT-TRACE-ID', traceId];
  if (bodyLength > 0) raw.push('Content-Length', String(bodyLength));
  let length = 0;
  for (let index = 0; index + 1 < given.length; index += 2) {
    const name = given[index] as string;
    const value = given[index + 1] as string;
    const lower = name.toLowerCase();
    length += name.length + value.length;
    if (length > HEADERS_LENGTH_MAX) {
      throw new ApiError('headers_too_large', `The headers are over ${HEADERS_LENGTH_MAX} bytes`);
    }
    if (!TOKEN.test(name)) throw refused('The name of a header is invalid');
    if (lower === 'transfer-encoding' || (lower.startsWith('bt-') && !isTaken(lower))) {
      throw refused('A header is not available in a script');
    }
    if (!IGNORED.has(lower)) raw.push(name, value);
  }
  return raw;
}

const isTaken = (lower: string): boolean => OURS_TAKEN.has(lower) || IGNORED.has(lower);

const refused = (detail: string): ApiError => new ApiError('bad_request', detail);
