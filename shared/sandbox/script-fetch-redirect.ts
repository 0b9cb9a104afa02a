/**
 * What follows from a redirect. Pure. Each hop is a request like the first: the guard judges where it
 * leads when it is made. Nothing secret may travel to an origin that the script did not name.
 */
import { fetchError } from './script-fetch-failure.ts';
import { type FetchRequest, readUrl } from './script-fetch-request.ts';

/** Real chains have one or two (a canonical host, then a region). */
export const REDIRECTS_MAX = 5;

const REDIRECTS = [301, 302, 303, 307, 308];
/** They describe a body that is no longer sent (Fetch standard, "request-body-header name"). */
const BODY_HEADERS = /^content-(?:encoding|language|location|type)$/i;
/** All that another origin gets: a key may be in any header (X-Api-Key, X-Auth-Token, …). */
const HARMLESS_HEADERS =
  /^(?:accept|accept-language|accept-encoding|content-type|content-language|user-agent)$/i;

/**
 * The request that a response asks for; `undefined` when the response is the answer. Throws
 * ScriptCallError when the redirect must not be followed.
 */
export function nextRequest(
  request: FetchRequest,
  status: number,
  location: string | undefined,
): FetchRequest | undefined {
  if (!REDIRECTS.includes(status) || request.redirect === 'manual') return undefined;
  if (request.redirect === 'error') throw fetchError('redirect_refused');
  if (location === undefined) return undefined;
  const url = readLocation(location, request.url);
  if (request.url.protocol === 'https:' && url.protocol === 'http:') {
    throw fetchError('redirect_downgrade');
  }
  return withoutSecrets(withMethodOf(request, status), url);
}

function readLocation(location: string, base: URL): URL {
  try {
    return readUrl(location, base);
  } catch {
    throw fetchError('redirect_invalid');
  }
}

/** Fetch standard, "HTTP-redirect fetch", step 12. */
function withMethodOf(request: FetchRequest, status: number): FetchRequest {
  const { method } = request;
  const isGet = method === 'GET' || method === 'HEAD';
  const becomesGet = status === 303 ? !isGet : status <= 302 && method === 'POST';
  if (!becomesGet) return request;
  const headers = request.headers.filter(([name]) => !BODY_HEADERS.test(name));
  return { ...request, method: 'GET', body: undefined, headers };
}

/** A destination that answers 307 must not have card data sent to whom it pleases. */
function withoutSecrets(request: FetchRequest, url: URL): FetchRequest {
  if (url.origin === request.url.origin) return { ...request, url };
  if (request.body !== undefined) throw fetchError('redirect_with_body');
  const headers = request.headers.filter(([name]) => HARMLESS_HEADERS.test(name));
  return { ...request, url, headers };
}
